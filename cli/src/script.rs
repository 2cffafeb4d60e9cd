//! Commands that nobody types: `-c`, and lines of standard input.

use std::io::{self, BufRead};

use crate::execute::{Executor, Failure, Next};
use crate::grammar::Fault;
use crate::terminal::say;

/// Columns of a line that is shown with carets below; a longer one would be wrapped.
const POINTED: usize = 120;

/// Runs one command; says on standard error what failed. Returns the exit status.
pub fn once(executor: &mut Executor, line: &str) -> u8 {
    match executor.line(line) {
        Ok(_) => 0,
        Err(failure) => {
            report(&failure, line, "");
            failure.status()
        }
    }
}

/// Runs commands line by line up to the first that fails. Returns the exit status.
pub fn lines(executor: &mut Executor) -> u8 {
    for (index, line) in io::stdin().lock().lines().enumerate() {
        let number = index + 1;
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                say(&format!("line {number}: cannot read standard input: {error}"));
                return 1;
            }
        };
        let next = executor.line(&line);
        executor.interrupt.release();
        match next {
            Ok(Next::Go) => {}
            Ok(Next::Leave) => return 0,
            Err(failure) => {
                report(&failure, &line, &format!("line {number}: "));
                return failure.status();
            }
        }
    }
    0
}

fn report(failure: &Failure, line: &str, prefix: &str) {
    match failure {
        Failure::Usage(fault) if line.chars().count() <= POINTED => {
            say(&format!("{prefix}{fault}\n  {}\n{}", Fault::shown(line), fault.caret(line, 2)));
        }
        failure if failure.is_quiet() => {}
        failure => say(&format!("{prefix}{failure}")),
    }
}
