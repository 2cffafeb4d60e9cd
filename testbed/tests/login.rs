//! `sluice` as login shell behind OpenSSH's own server: one command, a script, a terminal; roles by login name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::PathBuf;
use std::process::Command;

use support::terminal::Terminal;
use support::{Machine, Said, can_run, eventually, repository};

/// The server of OpenSSH: installed, or unpacked by testbed/setup.sh.
fn sshd() -> Option<PathBuf> {
    let unpacked = repository().join("target/openssh/usr/sbin/sshd");
    [PathBuf::from("/usr/sbin/sshd"), unpacked].into_iter().find(|path| path.exists())
}

/// A machine with users whose shell is sluice, and a server that lets them in by root's key.
fn with_server(sshd: &std::path::Path) -> Machine {
    let machine = Machine::start();
    // Where it is unpacked, what it needs is beside it.
    let root = sshd.parent().unwrap().parent().unwrap();
    let said = machine.shell(&format!(
        r#"
        groupadd --force --system sluice
        chgrp sluice /run/sluice/sluice.sock
        id sshd > /dev/null 2>&1 || useradd --system --home-dir /run/sshd --no-create-home sshd
        mkdir -p -m 700 ~/.ssh /run/server
        ssh-keygen -q -t ed25519 -N "" -f ~/.ssh/id_ed25519
        ssh-keygen -q -t ed25519 -N "" -f /run/server/key
        cp ~/.ssh/id_ed25519.pub /run/server/users
        chmod 755 /run/server
        for user in noc chief guest nobody-knows; do
            useradd --create-home --home-dir "/run/home/$user" --groups sluice --password "*" \
                --shell /run/bin/sluice "$user"
        done
        printf '%s\n' > /run/server/config "Port 22" "ListenAddress 192.0.2.1" "HostKey /run/server/key" \
            "AuthorizedKeysFile /run/server/users" "PidFile none" "UsePAM no" "StrictModes no" "PrintMotd no" \
            "PasswordAuthentication no"
        echo "192.0.2.1 $(cat /run/server/key.pub)" > ~/.ssh/known_hosts
        LD_LIBRARY_PATH=$(echo {root}/lib/*-linux-gnu) {sshd} -f /run/server/config
        sluice <<END
configure
set access user noc role operator
set access user chief role admin
set access user guest role read-only
apply
END
        "#,
        root = root.display(),
        sshd = sshd.display(),
    ));
    assert_eq!(said.status, Some(0), "{}", said.text);
    machine
}

fn ssh(machine: &Machine, arguments: &[&str]) -> Command {
    let mut command = machine.command("ssh");
    command.args(["-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]).args(arguments);
    command
}

fn once(machine: &Machine, user: &str, line: &str) -> Said {
    Said::of(ssh(machine, &[&format!("{user}@192.0.2.1"), line]), "")
}

#[test]
fn ssh_leads_straight_to_the_shell_and_names_decide_what_one_may() {
    if !can_run("ssh_leads_straight_to_the_shell_and_names_decide_what_one_may") {
        return;
    }
    let Some(sshd) = sshd() else {
        eprintln!("SKIPPED ssh_leads_straight_to_the_shell_and_names_decide_what_one_may: there is no sshd");
        return;
    };
    let machine = with_server(&sshd);

    // One command, and its exit status.
    let said = once(&machine, "guest", "show version");
    assert!(said.status == Some(0) && said.text.contains("Version"), "{said:?}");
    let said = once(&machine, "guest", "show ecofilter-balancer | json");
    assert!(said.status == Some(0) && said.text.contains("\"balancing-method\""), "{said:?}");
    let said = once(&machine, "noc", "shw version");
    assert!(said.status == Some(2), "{said:?}");

    // A role by the login name.
    let said = once(&machine, "guest", "call ecofilter-balancer set-bypass-ecofilter-unit main bypass");
    assert!(said.status == Some(1) && said.text.contains("user guest is read-only"), "{said:?}");
    let said = once(&machine, "noc", "call ecofilter-balancer set-bypass-ecofilter-unit main bypass");
    assert!(said.status == Some(1) && said.text.contains("\"main\" does not exist"), "{said:?}");
    let said = once(&machine, "noc", "configure\nset port p1 number 1\n");
    assert!(said.status == Some(1) && said.text.contains("needs the role admin"), "{said:?}");
    let said = once(&machine, "nobody-knows", "show version");
    assert!(said.status == Some(1) && said.text.contains("user nobody-knows has no role here"), "{said:?}");

    // A script from the other end.
    let said = Said::of(
        ssh(&machine, &["-T", "chief@192.0.2.1"]),
        "configure\nset port p1 number 1 interface eth1\napply comment \"by ssh\"\nrun show rollbacks\n",
    );
    assert!(said.status == Some(0), "{said:?}");
    let row = said.text.lines().find(|line| line.contains("by ssh")).unwrap_or_default();
    assert!(row.contains("chief"), "{said:?}");

    // A terminal.
    let mut command = ssh(&machine, &["-tt", "chief@192.0.2.1"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(&command, 40);
    terminal.see("chief@device> ");
    terminal.press("show ?");
    terminal.see("Possible completions:");
    terminal.see("chief@device> show ");
    terminal.press("po\ts\t");
    terminal.see("chief@device> show ports ");
    terminal.press("\x03");
    terminal.see("\n");
    terminal.see("chief@device> ");
    terminal.press("edit port p1\r");
    terminal.see("[edit port p1]");
    terminal.see("chief@device# ");
    terminal.press("show\r");
    terminal.see("interface eth1;");
    terminal.see("chief@device# ");
    terminal.press("quit\r");
    terminal.see("chief@device> ");
    terminal.press("\x04");
    assert_eq!(terminal.leave(), 0);

    // Whose connection breaks leaves no session behind.
    let sessions = || machine.shell("ls /proc/*/exe -l 2>/dev/null | grep -c /run/bin/sluice || true").text;
    eventually("all shells have ended", || sessions().trim() == "0");
}
