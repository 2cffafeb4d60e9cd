//! What the kernel does alone. Its work is done by the thread that polls the port, which is bound to the core of the
//! system under test.

use std::os::fd::AsFd;

use xdp::Operation::{Add, Modulo, Multiply, Or, ShiftLeft, ShiftRight, Xor};
use xdp::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8};
use xdp::{Action, Assembler, Attachment, Condition, DeviceMap, Mode, Program, Width, context, helper};

use super::{Running, Start};
use crate::appliance::Side;
use crate::bench::pin;
use crate::bench::yard::{BOX, Way, Yard, index, link_port, pair_port};
use crate::error::Result;
use crate::netns::feed;

/// Of the header that is pushed: an EtherType for experiments (IEEE 802) and a link's number.
const HEADER: [u8; 4] = [0x88, 0xb6, 0x00, 0x01];
/// Room for an IPv4 header behind Ethernet.
const SEEN: i32 = 34;

/// XDP programs at the ports: hash, header, redirect; and on the way back header off, redirect.
pub(super) fn redirect(yard: &Yard) -> Result<Start> {
    let mut running = Running { version: "bpf, native mode".to_owned(), ..Running::default() };
    let pairs = yard.pairs() as u32;
    let ways: &[Side] = if yard.way() == Way::BothWays { &[Side::Lan, Side::Wan] } else { &[Side::Lan] };
    yard.run().inside(BOX, || {
        for side in ways {
            let ports = DeviceMap::new(pairs)?;
            for pair in 1..=pairs {
                ports.put(pair - 1, index(&pair_port(pair as usize, *side))?.get())?;
            }
            let program = Program::load("split", &split(&ports, pairs)?)?;
            running.attachments.push(Attachment::to(&program, index(&link_port(*side))?, Mode::Native)?);
            running.maps.push(ports);
        }
        if yard.way() == Way::Through {
            let link = DeviceMap::new(1)?;
            link.put(0, index(&link_port(Side::Wan))?.get())?;
            let program = Program::load("join", &join(&link)?)?;
            for pair in 1..=pairs {
                let port = index(&pair_port(pair as usize, Side::Wan))?;
                running.attachments.push(Attachment::to(&program, port, Mode::Native)?);
            }
            running.maps.push(link);
        }
        Ok(())
    })?;
    running.port_threads = use_port_threads(yard)?;
    Ok(Start::Running(Box::new(running)))
}

/// Frames to a pair by a multiplicative hash of the smaller and the greater address. R6 is the context.
fn split(ports: &DeviceMap, pairs: u32) -> Result<Vec<xdp::Instruction>> {
    let mut code = Assembler::new();
    let (pass, ordered) = (code.label(), code.label());
    code.mov(R6, R1).load(Width::Word, R7, R6, context::DATA).load(Width::Word, R8, R6, context::DATA_END);
    code.mov(R1, R7).add(R1, SEEN).jump_if(Condition::Greater, R1, R8, pass);
    code.load(Width::Half, R1, R7, 12);
    code.jump_if(Condition::NotEqual, R1, i32::from(0x0800_u16.to_be()), pass);
    code.load(Width::Word, R2, R7, 26).load(Width::Word, R3, R7, 30);
    code.jump_if(Condition::LessOrEqual, R2, R3, ordered).alu(Xor, R2, R3).alu(Xor, R3, R2).alu(Xor, R2, R3);
    code.place(ordered).alu(ShiftLeft, R2, 32).alu(Or, R2, R3);
    code.load(Width::Byte, R3, R7, 23).alu(Add, R2, R3);
    code.mov64(R3, 0x9e37_79b9_7f4a_7c15).alu(Multiply, R2, R3).alu(ShiftRight, R2, 40).alu(
        Modulo,
        R2,
        pairs as i32,
    );
    code.mov(R8, R2);
    push_header(&mut code, pass);
    code.map(R1, ports.as_fd()).mov(R2, R8).mov(R3, Action::Drop as i32).call(helper::REDIRECT_MAP).exit();
    code.place(pass).mov(R0, Action::Pass as i32).exit();
    Ok(code.finish()?)
}

/// Moves the MACs of the frame four bytes forward and puts the header behind them.
fn push_header(code: &mut Assembler, fault: xdp::Label) {
    code.mov(R1, R6).mov(R2, -4).call(helper::ADJUST_HEAD).jump_if(Condition::NotEqual, R0, 0, fault);
    code.load(Width::Word, R1, R6, context::DATA).load(Width::Word, R2, R6, context::DATA_END);
    code.mov(R3, R1).add(R3, SEEN).jump_if(Condition::Greater, R3, R2, fault);
    for at in [0, 4, 8] {
        code.load(Width::Word, R4, R1, at + 4).store(Width::Word, R1, at, R4);
    }
    code.store(Width::Word, R1, 12, i32::from_ne_bytes(HEADER));
}

/// Takes the header away, and sends the frame by the link.
fn join(link: &DeviceMap) -> Result<Vec<xdp::Instruction>> {
    let mut code = Assembler::new();
    let pass = code.label();
    code.mov(R6, R1).load(Width::Word, R1, R6, context::DATA).load(Width::Word, R2, R6, context::DATA_END);
    code.mov(R3, R1).add(R3, SEEN).jump_if(Condition::Greater, R3, R2, pass);
    code.load(Width::Half, R3, R1, 12);
    code.jump_if(Condition::NotEqual, R3, i32::from(u16::from_ne_bytes([HEADER[0], HEADER[1]])), pass);
    code.load(Width::Word, R3, R1, 0).load(Width::Word, R4, R1, 4).load(Width::Word, R5, R1, 8);
    code.store(Width::Word, R1, 4, R3).store(Width::Word, R1, 8, R4).store(Width::Word, R1, 12, R5);
    code.mov(R1, R6).mov(R2, 4).call(helper::ADJUST_HEAD).jump_if(Condition::NotEqual, R0, 0, pass);
    code.map(R1, link.as_fd()).mov(R2, 0).mov(R3, Action::Drop as i32).call(helper::REDIRECT_MAP).exit();
    code.place(pass).mov(R0, Action::Pass as i32).exit();
    Ok(code.finish()?)
}

/// Filters of traffic control on the link's port, which redirect by the low bits of the source address.
pub(super) fn mirred(yard: &Yard) -> Result<Start> {
    let pairs = yard.pairs();
    if !pairs.is_power_of_two() || pairs > 256 {
        return Ok(Start::Missing(format!("its filters split by a power of two up to 256, not by {pairs}")));
    }
    let attachments = yard.let_ports_poll()?;
    let port = link_port(Side::Lan);
    let mut lines = vec![format!("qdisc add dev {port} clsact")];
    // A hash table of filters by the last byte of the source address, which is 12 bytes into the IPv4 header.
    let filter = format!("filter add dev {port} ingress protocol ip pref 1");
    // A table has two buckets at least.
    let buckets = pairs.max(2);
    lines.push(format!("{filter} handle 2: u32 divisor {buckets}"));
    for bucket in 0..buckets {
        let out = pair_port(bucket % pairs + 1, Side::Lan);
        lines.push(format!(
            "{filter} u32 ht 2:{bucket:x}: match u32 0 0 action mirred egress redirect dev {out}"
        ));
    }
    lines.push(format!(
        "{filter} u32 ht 800:: match u32 0 0 hashkey mask 0x{:08x} at 12 link 2:",
        buckets - 1
    ));
    let mut command = yard.run().command(BOX, "tc");
    command.args(["-batch", "-"]);
    feed(command, &(lines.join("\n") + "\n"))?;
    let port_threads = use_port_threads(yard)?;
    Ok(Start::Running(Box::new(Running {
        attachments,
        port_threads,
        version: "u32, mirred".to_owned(),
        ..Running::default()
    })))
}

/// Lets threads poll the ports, on the core of the system under test; their ids.
fn use_port_threads(yard: &Yard) -> Result<Vec<u32>> {
    let mut threads = Vec::new();
    for port in yard.inlets() {
        let mut command = yard.run().command(BOX, "sh");
        command.args(["-c", "echo 1 > /sys/class/net/$0/threaded", &port]);
        feed(command, "")?;
        threads.extend(pin::pin_port_threads(&port, pin::SYSTEM)?);
    }
    Ok(threads)
}
