//! What the figures were taken on.

use serde::Serialize;

/// The machine and the day.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Cores that Linux sees.
    pub cores: usize,
    /// A virtual machine, as the processor says.
    pub is_virtual: bool,
    /// Version of the kernel.
    pub kernel: String,
    /// Processes that wanted to run in the minute before, on average: more than 0 is somebody else.
    pub load_before: f64,
    /// UTC.
    pub date: String,
}

impl Machine {
    /// This one, now. What can't be read is empty.
    #[must_use]
    pub fn of_now() -> Machine {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = processor.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
        Machine {
            processor: field("model name"),
            cores: processor.lines().filter(|line| line.starts_with("processor")).count(),
            is_virtual: field("flags").split(' ').any(|flag| flag == "hypervisor"),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0.0),
            date: now.split('T').next().unwrap_or_default().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_processor_and_a_kernel() {
        let machine = Machine::of_now();
        assert!(machine.cores > 0 && !machine.kernel.is_empty(), "{machine:?}");
        assert_eq!(machine.date.len(), 10);
    }
}
