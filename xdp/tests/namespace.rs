//! Programs at work, in a network namespace of each test's own. Root alone may load any.
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::process::Command;

use xdp::Register::{R0, R1, R2, R10};
use xdp::{
    Action, Assembler, Attachment, Condition, DeviceMap, LiveRun, Mode, PerCpuArray, Program, Register,
    SocketMap, Verdict, Width, WordArray, XdpError, context, helper,
};

fn in_namespace(test: impl FnOnce() + Send + 'static) {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED, NOTHING WAS TESTED: needs root for a network namespace");
        return;
    }
    let thread = std::thread::spawn(move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("a network namespace");
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn run(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().expect("a command")).args(words).output().expect("run it");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn index(interface: &str) -> NonZeroU32 {
    let index = nix::net::if_::if_nametoindex(interface).expect("the interface");
    NonZeroU32::new(index).expect("an index")
}

/// `near` and `far`, up.
fn wire() -> (NonZeroU32, NonZeroU32) {
    run("ip link add near type veth peer name far");
    run("ip link set near up");
    run("ip link set far up");
    (index("near"), index("far"))
}

fn constant(action: Action) -> Program {
    let mut code = Assembler::new();
    code.mov(R0, action as i32).exit();
    Program::load("constant", &code.finish().expect("whole")).expect("loaded")
}

/// Drops every frame, and counts it in entry 0.
fn counting(counters: &PerCpuArray) -> Program {
    let mut code = Assembler::new();
    let out = code.label();
    code.store(Width::Word, R10, -4, 0).mov(R2, R10).add(R2, -4);
    code.map(R1, counters.as_fd()).call(helper::MAP_LOOKUP).jump_if(Condition::Equal, R0, 0, out);
    code.mov(R1, 1).atomic_add(R0, 0, R1);
    code.place(out).mov(R0, Action::Drop as i32).exit();
    Program::load("counting", &code.finish().expect("whole")).expect("loaded")
}

#[test]
fn a_program_reads_frames_and_settings() {
    in_namespace(|| {
        let wanted = WordArray::new(2).expect("words");
        // Drops frames of the EtherType in the second word, transmits others, and writes 7 into their first byte.
        let mut code = Assembler::new();
        let (pass, drop) = (code.label(), code.label());
        code.load(Width::Word, R2, R1, context::DATA).load(Width::Word, Register::R3, R1, context::DATA_END);
        code.mov(Register::R4, R2).add(Register::R4, 14);
        code.jump_if(Condition::Greater, Register::R4, Register::R3, pass);
        code.load(Width::Half, Register::R5, R2, 12).swap_big_endian(Register::R5, 16);
        code.map_value(Register::R6, wanted.as_fd(), 8).load(Width::Double, Register::R6, Register::R6, 0);
        code.jump_if(Condition::Equal, Register::R5, Register::R6, drop);
        code.store(Width::Byte, R2, 0, 7).mov(R0, Action::Transmit as i32).exit();
        code.place(drop).mov(R0, Action::Drop as i32).exit();
        code.place(pass).mov(R0, Action::Pass as i32).exit();
        let program = Program::load("settings", &code.finish().expect("whole")).expect("loaded");
        let mut frame = vec![2; 60];
        frame[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
        let mut changed = frame.clone();
        changed[0] = 7;
        assert_eq!(program.run(&frame).expect("run"), Verdict { action: Action::Transmit, frame: changed });
        wanted.set(&[1, 0x88b5]).expect("set");
        assert_eq!(wanted.get().expect("read"), [1, 0x88b5]);
        assert_eq!(program.run(&frame).expect("run"), Verdict { action: Action::Drop, frame: frame.clone() });
        let wrong = wanted.set(&[1]).expect_err("one word of two");
        assert!(matches!(wrong, XdpError::Value { actual: 1, .. }), "{wrong}");
        assert!(program.run(&frame[..13]).is_err());
    });
}

#[test]
fn live_frames_cross_a_wire_and_are_counted() {
    in_namespace(|| {
        let (a, b) = wire();
        let counters = PerCpuArray::new(1).expect("counters");
        let _counted = Attachment::to(&counting(&counters), b, Mode::Native).expect("attached");
        let out = DeviceMap::new(1).expect("devices");
        out.put(0, a.get()).expect("put");
        let mut code = Assembler::new();
        code.map(R1, out.as_fd()).mov(R2, 0).mov(Register::R3, Action::Aborted as i32);
        code.call(helper::REDIRECT_MAP).exit();
        let generator = Program::load("generator", &code.finish().expect("whole")).expect("loaded");
        let how = LiveRun { frames: 1000, batch: 32, interface: a, queue: 0 };
        generator.run_live(&[2; 60], how).expect("run");
        let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while counters.sum(0).expect("a counter") < 1000 {
            assert!(std::time::Instant::now() < until, "{:?} of 1000", counters.get(0));
            std::thread::yield_now();
        }
        assert_eq!(counters.sum(0).expect("a counter"), 1000);
        counters.set(0, 0).expect("set");
        assert_eq!(counters.sum(0).expect("a counter"), 0);
        assert!(generator.run_live(&[2; 60], LiveRun { batch: 257, ..how }).is_err());
    });
}

#[test]
fn an_attachment_ends_with_its_value_and_there_is_one() {
    in_namespace(|| {
        let (a, b) = wire();
        for mode in [Mode::Native, Mode::Generic] {
            let attached = Attachment::to(&constant(Action::Drop), a, mode).expect("attached");
            assert_eq!(attached.mode(), mode);
            let shown = run("ip link show near");
            assert!(shown.contains("xdp"), "{shown}");
            assert_eq!(shown.contains("xdpgeneric"), mode == Mode::Generic, "{shown}");
            let second = Attachment::to(&constant(Action::Pass), a, mode).expect_err("the second");
            assert!(matches!(second, XdpError::Occupied { .. }), "{second}");
            attached.replace(&constant(Action::Pass)).expect("replaced");
            drop(attached);
            assert!(!run("ip link show near").contains("xdp"));
        }
        // Gone with its interface: dropping it then is no fault, and a new one of the name is free.
        let attached = Attachment::to(&constant(Action::Drop), b, Mode::Native).expect("attached");
        run("ip link del far");
        assert!(attached.replace(&constant(Action::Pass)).is_err());
        drop(attached);
    });
}

#[test]
fn a_driver_without_native_xdp_says_so() {
    in_namespace(|| {
        let refused =
            Attachment::to(&constant(Action::Drop), index("lo"), Mode::Native).expect_err("refused");
        assert!(matches!(refused, XdpError::Unsupported { .. }), "{refused}");
        Attachment::to(&constant(Action::Drop), index("lo"), Mode::Generic).expect("attached");
    });
}

#[test]
fn a_bad_program_is_refused_with_the_verifiers_reasons() {
    in_namespace(|| {
        let mut code = Assembler::new();
        code.load(Width::Word, R2, R1, context::DATA).load(Width::Byte, R0, R2, 0).exit();
        let refused = Program::load("unchecked", &code.finish().expect("whole")).expect_err("refused");
        let text = refused.to_string();
        assert!(matches!(refused, XdpError::Rejected { .. }), "{text}");
        assert!(text.contains("unchecked") && text.contains("invalid access to packet"), "{text}");
    });
}

#[test]
fn a_socket_map_takes_xdp_sockets_alone() {
    in_namespace(|| {
        let map = SocketMap::new(2).expect("sockets");
        let other = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
        assert!(map.put(0, other.as_fd()).is_err());
        map.take(1).expect("none is there");
        assert!(map.take(2).is_err(), "there are two queues");
    });
}

#[test]
fn who_may_not_is_told_what_would_be_needed() {
    in_namespace(|| {
        let user = 65_534_u32;
        // SAFETY: a system call without pointers; on this thread, not the process.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) }, 0);
        let mut code = Assembler::new();
        code.mov(R0, 0).exit();
        for denied in [
            Program::load("denied", &code.finish().expect("whole")).expect_err("denied"),
            SocketMap::new(1).expect_err("denied"),
        ] {
            assert!(denied.to_string().contains("CAP_BPF"), "{denied}");
        }
    });
}
