//! A site that stands: namespaces, cables, hosts, appliances, traffic agents, and the balancer in the middle.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path as FilePath, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use swpipe::io::Backend;

use crate::agent::Agent;
use crate::appliance::{self, Change, PairPorts, Side};
use crate::bridge;
use crate::edge;
use crate::error::{Doing, Error, Result};
use crate::netns::Run;
use crate::plan::{self, HostInterface, Path, Plan, sides};
use crate::plane::{BMV2_ADDRESS, DataPlane};
use crate::raw;
use crate::rng::Rng;
use crate::sluice::{Balancer, Event, Link, Sluice};
use crate::topology::{Appliance, ApplianceKind, Topology};
use crate::traffic::{self, Ends, Finished, PORT, Served, tcp, udp};
use crate::wire::Wires;

/// For answers that come at once.
const SOON: Duration = Duration::from_secs(20);
/// For sessions to come to their end.
const LATER: Duration = Duration::from_secs(90);
/// First port of clients; the kernel picks its own below (ip_local_port_range).
const CLIENT_PORTS: u16 = 20000;

/// What stands between links and pairs.
#[derive(Debug, Clone)]
pub enum Middle {
    /// Link number n is cabled straight to the ports of pair number n.
    Cables,
    /// The balancer.
    Balancer(Programs),
}

/// Where the programs under test are, and how they are put together.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Directory of swpipe, sluiced, sluice.
    pub directory: PathBuf,
    /// What is programmed.
    pub plane: DataPlane,
    /// How the software pipeline reads and writes its interfaces.
    pub io: Backend,
    /// What timed checks grant beyond their bounds, ms: 0 to measure, more where others use the machine too.
    pub slack_ms: f64,
}

impl Programs {
    /// Fails when a program isn't there.
    ///
    /// # Errors
    /// [`Error::MissingProgram`] names the first.
    pub fn check(&self) -> Result<()> {
        let pipeline = (self.plane == DataPlane::Swpipe).then_some("swpipe");
        pipeline.iter().chain(&["sluiced", "sluice"]).try_for_each(|name| program(self, name).map(drop))
    }
}

/// A fault in the cabling.
#[derive(Debug, Clone, Default)]
pub struct Cabling {
    /// The WAN cables of these two pairs are swapped.
    pub swapped_wan: Option<(String, String)>,
}

/// A site that stands. Dropping it takes everything down.
pub struct Lab {
    /// What was asked for.
    pub topology: Topology,
    /// What follows from it.
    pub plan: Plan,
    /// How connection tracking of bridge appliances is done here.
    pub tracking: Option<bridge::Tracking>,
    // Order of the fields is the order of their end: agents, balancer, then the namespaces.
    traffic: [Agent; 2],
    edges: [Agent; 2],
    wires: BTreeMap<String, Wires>,
    appliances: BTreeMap<String, Agent>,
    controller: Option<Child>,
    pipeline: Option<Child>,
    programs: Option<Programs>,
    run: Run,
    next_session: u64,
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Lan => "lan",
        Side::Wan => "wan",
    }
}

fn appliance_space(name: &str) -> String {
    format!("a-{name}")
}

impl Lab {
    /// Builds the site and, with a balancer, starts it; pairs may still be coming up.
    ///
    /// # Errors
    /// Whatever can't be made; what was made is removed again.
    pub fn build(run: Run, topology: Topology, middle: &Middle, cabling: &Cabling) -> Result<Lab> {
        let plan = Plan::new(&topology);
        let cables = matches!(middle, Middle::Cables);
        if cables && topology.pairs().count() < topology.links.len() {
            return Err(Error::Unsupported(
                "cabling links straight to pairs takes a pair for every link".into(),
            ));
        }
        make_spaces(&run, &topology, cables)?;
        lay_cables(&run, &topology, cables, cabling)?;
        for side in sides() {
            host_side(&run, &topology, &plan, side)?;
        }
        let mut tracking = None;
        let mut appliances = BTreeMap::new();
        let mut wires = BTreeMap::new();
        for appliance in &topology.appliances {
            let space = appliance_space(&appliance.name);
            let ports = ports_of(&topology, appliance);
            let used: Vec<PairPorts> = match cables {
                true => ports
                    .into_iter()
                    .filter(|pair| pair_number(&topology, &pair.name) < topology.links.len())
                    .collect(),
                false => ports,
            };
            bring_up(&run, &space, used.iter().flat_map(|pair| [pair.lan.clone(), pair.wan.clone()]))?;
            match appliance.kind {
                ApplianceKind::Bridge => tracking = Some(bridge::build(&run, &space, &used, false)?),
                ApplianceKind::Wire => {
                    wires.insert(appliance.name.clone(), Wires::build(&run, &space, &used)?);
                }
                ApplianceKind::Emulated => {
                    let cores = topology.pairs().filter(|(_, pair)| appliance.pairs.contains(&pair.name));
                    let cores = cores.map(|(unit, _)| unit.cores).max().unwrap_or(1);
                    let setup = appliance::Setup { steering: topology.steering, cores, pairs: used };
                    let command = run.agent(&space, "appliance");
                    let agent = Agent::start(&format!("appliance {}", appliance.name), command, &setup)?;
                    appliances.insert(appliance.name.clone(), agent);
                }
            }
        }
        if let Middle::Balancer(programs) = middle
            && programs.io == Backend::AfXdp
        {
            put_tags_into_frames(&run, &topology)?;
        }
        let edges =
            [start_edge(&run, &topology, &plan, Side::Lan)?, start_edge(&run, &topology, &plan, Side::Wan)?];
        let traffic = [
            start_traffic(&run, &topology, &plan, Side::Lan)?,
            start_traffic(&run, &topology, &plan, Side::Wan)?,
        ];
        let mut lab = Lab {
            topology,
            plan,
            tracking,
            traffic,
            edges,
            appliances,
            wires,
            controller: None,
            pipeline: None,
            programs: None,
            run,
            next_session: 1,
        };
        if let Middle::Balancer(programs) = middle {
            lab.programs = Some(programs.clone());
            lab.start_balancer()?;
        }
        Ok(lab)
    }

    /// The namespaces and files.
    pub fn run(&self) -> &Run {
        &self.run
    }

    // ---- the balancer ----

    /// What timed checks grant beyond their bounds, ms.
    #[must_use]
    pub fn slack_ms(&self) -> f64 {
        self.programs.as_ref().map_or(0.0, |programs| programs.slack_ms)
    }

    /// The data plane, if there is a balancer.
    #[must_use]
    pub fn plane(&self) -> Option<DataPlane> {
        self.programs.as_ref().map(|programs| programs.plane)
    }

    /// What is in the middle.
    #[must_use]
    pub fn plane_name(&self) -> &'static str {
        self.plane().map_or("cables", DataPlane::name)
    }

    fn programs(&self) -> Result<&Programs> {
        self.programs.as_ref().ok_or_else(|| Error::Unsupported("this site has no balancer".into()))
    }

    /// The balancer's CLI.
    ///
    /// # Errors
    /// When the site was built without balancer.
    pub fn sluice(&self) -> Result<Sluice> {
        let program = program(self.programs()?, "sluice")?;
        Ok(Sluice { program, socket: self.run.directory().join("sluice.sock") })
    }

    fn start_balancer(&mut self) -> Result<()> {
        let directory = self.run.directory().to_path_buf();
        let site =
            serde_json::to_string_pretty(&plan::site_configuration(&self.topology)).unwrap_or_default();
        fs::write(directory.join("site.json"), site).doing(|| "writing site.json".into())?;
        fs::create_dir_all(directory.join("state")).doing(|| "making the state directory".into())?;
        let ports: Vec<String> = plan::box_ports(&self.topology).into_iter().map(|port| port.name).collect();
        bring_up(&self.run, "box", ports.iter().cloned())?;
        // The configuration numbers them from port 1, lane 0.
        let ports: Vec<(usize, String)> = (plan::LANES..).zip(ports).collect();
        let plane = self.programs()?.plane;
        let command = plane.command(&self.run, "box", self.programs()?, &directory.join("site.json"), &ports);
        if let Some(command) = command {
            let log = format!("{}.log", plane.name());
            if plane == DataPlane::Bmv2 {
                self.run.ip(Some("box"), &["link set dev lo up".to_owned()])?;
            }
            self.pipeline = Some(spawn_logged(command, &directory.join(&log))?);
            match plane {
                DataPlane::Bmv2 => self.await_bmv2()?,
                DataPlane::P4ref => self.await_line(&log, "P4Runtime on")?,
                DataPlane::Swpipe | DataPlane::Embedded => self.await_line(&log, "ready")?,
            }
        }
        self.start_controller()
    }

    fn await_bmv2(&mut self) -> Result<()> {
        self.wait_until("BMv2 to serve P4Runtime", SOON, |lab| {
            lab.still_running()?;
            lab.run.inside("box", || {
                Ok(std::net::TcpStream::connect(BMV2_ADDRESS).map(drop).map_err(|error| error.to_string()))
            })
        })
    }

    /// Starts the controller (again).
    ///
    /// # Errors
    /// When it ends or doesn't answer the CLI in time.
    pub fn start_controller(&mut self) -> Result<()> {
        let directory = self.run.directory().to_path_buf();
        let mut command = self.run.command("box", program(self.programs()?, "sluiced")?);
        command.arg("--config").arg(directory.join("site.json"));
        let programs = self.programs()?;
        command.args(programs.plane.controller_arguments(&self.run, programs.io));
        command.arg("--socket").arg(directory.join("sluice.sock"));
        command.arg("--state-dir").arg(directory.join("state"));
        command.arg("--events").arg(directory.join("events.jsonl"));
        self.controller = Some(spawn_logged(command, &directory.join("sluiced.log"))?);
        let sluice = self.sluice()?;
        self.wait_until("the controller to answer the CLI", SOON, |lab| {
            lab.still_running()?;
            Ok(match sluice.balancer() {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            })
        })
    }

    /// Kills the controller with SIGKILL and waits for its end.
    ///
    /// # Errors
    /// When it isn't running.
    pub fn kill_controller(&mut self) -> Result<()> {
        let Some(mut controller) = self.controller.take() else {
            return Err(Error::Unsupported("the controller isn't running".into()));
        };
        controller.kill().doing(|| "killing the controller".into())?;
        controller.wait().doing(|| "waiting for the controller's end".into()).map(drop)
    }

    /// Stops the controller for a while, as a machine does that is out of time, and lets it go on.
    ///
    /// # Errors
    /// When it isn't running.
    pub fn stop_controller_for(&self, time: Duration) -> Result<()> {
        let controller = self
            .controller
            .as_ref()
            .ok_or_else(|| Error::Unsupported("the controller isn't running".into()))?;
        let pid = nix::unistd::Pid::from_raw(controller.id() as i32);
        let signal = |signal| {
            nix::sys::signal::kill(pid, signal)
                .map_err(std::io::Error::from)
                .doing(|| "stopping the controller".into())
        };
        signal(nix::sys::signal::Signal::SIGSTOP)?;
        std::thread::sleep(time);
        signal(nix::sys::signal::Signal::SIGCONT)
    }

    /// Fails when a program under test has ended by itself.
    ///
    /// # Errors
    /// [`Error::Agent`] with the end of its log.
    pub fn still_running(&mut self) -> Result<()> {
        let directory = self.run.directory().to_path_buf();
        let plane = self.plane_name();
        for (name, child) in [(plane, &mut self.pipeline), ("sluiced", &mut self.controller)] {
            if let Some(status) = child.as_mut().and_then(|child| child.try_wait().ok().flatten()) {
                let log = fs::read_to_string(directory.join(format!("{name}.log"))).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(6).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                let reason = format!("ended with {status}; its log ends:\n{}", tail.join("\n"));
                return Err(Error::Agent { agent: name.into(), reason });
            }
        }
        Ok(())
    }

    fn await_line(&mut self, log: &str, word: &str) -> Result<()> {
        let file = self.run.directory().join(log);
        self.wait_until(&format!("{word:?} in {log}"), SOON, |lab| {
            lab.still_running()?;
            let text = fs::read_to_string(&file).unwrap_or_default();
            Ok(if text.contains(word) {
                Ok(())
            } else {
                Err(text.lines().last().unwrap_or("nothing").to_string())
            })
        })
    }

    /// Polls until `probe` gives Ok; its Err says what was seen instead.
    ///
    /// # Errors
    /// [`Error::Deadline`], or what the probe fails with.
    pub fn wait_until<T>(
        &mut self,
        what: &str,
        patience: Duration,
        mut probe: impl FnMut(&mut Lab) -> Result<std::result::Result<T, String>>,
    ) -> Result<T> {
        let began = Instant::now();
        loop {
            match probe(self)? {
                Ok(value) => return Ok(value),
                Err(seen) if began.elapsed() > patience => {
                    return Err(Error::Deadline { what: what.into(), seconds: patience.as_secs_f64(), seen });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Waits until these pairs are in this state.
    ///
    /// # Errors
    /// [`Error::Deadline`] with the states seen last.
    pub fn wait_pairs(&mut self, pairs: &[String], state: &str, patience: Duration) -> Result<Balancer> {
        let sluice = self.sluice()?;
        self.wait_until(&format!("pairs {} to be {state}", pairs.join(", ")), patience, |lab| {
            lab.still_running()?;
            let balancer = sluice.balancer()?;
            let states: Vec<String> = pairs.iter().map(|p| format!("{p} {}", balancer.state(p))).collect();
            let there = pairs.iter().all(|pair| balancer.state(pair) == state);
            Ok(if there { Ok(balancer) } else { Err(states.join(", ")) })
        })
    }

    /// Waits until every pair is up.
    ///
    /// # Errors
    /// As [`Lab::wait_pairs`].
    pub fn wait_all_up(&mut self) -> Result<Balancer> {
        let pairs = self.pair_names();
        let patience = self.recovery_time() + Duration::from_secs(15);
        self.wait_pairs(&pairs, "up", patience)
    }

    /// All pairs.
    pub fn pair_names(&self) -> Vec<String> {
        self.topology.pairs().map(|(_, pair)| pair.name.clone()).collect()
    }

    /// Detection bound of the liveness profile: interval x probes-down-count + max-delay.
    pub fn detection_bound(&self) -> Duration {
        let value = |leaf| self.topology.liveness_value(leaf);
        Duration::from_millis(value("interval") * value("probes-down-count"))
            + Duration::from_micros(value("max-delay"))
    }

    /// Plain keep-alives that go out in a second, both directions of all pairs.
    pub fn keepalive_rate(&self) -> f64 {
        2.0 * self.topology.pairs().count() as f64 * 1e3 / self.topology.liveness_value("interval") as f64
    }

    /// How long a pair takes to come up again when its ports are: initial-delay and probes-up-count intervals.
    pub fn recovery_time(&self) -> Duration {
        let value = |leaf| self.topology.liveness_value(leaf);
        Duration::from_millis(value("initial-delay") + value("interval") * (value("probes-up-count") + 2))
    }

    /// Id of the newest event.
    ///
    /// # Errors
    /// When the CLI fails.
    pub fn last_event(&self) -> Result<u64> {
        let events: Vec<Event> = self.sluice()?.show("events")?;
        Ok(events.iter().map(|event| event.id).max().unwrap_or(0))
    }

    /// Counters of the links.
    ///
    /// # Errors
    /// When the CLI fails.
    pub fn links(&self) -> Result<Vec<Link>> {
        self.sluice()?.show("link")
    }

    /// The kernel's counters of an interface of the balancer's namespace.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn kernel_counters(&self) -> Result<BTreeMap<String, crate::sluice::PortCounters>> {
        self.run.inside("box", interface_counters)
    }

    // ---- appliances ----

    fn appliance(&mut self, name: &str) -> Result<&mut Agent> {
        self.appliances
            .get_mut(name)
            .ok_or_else(|| Error::Unsupported(format!("{name} is no emulated appliance of this topology")))
    }

    /// Names of the emulated appliances.
    pub fn emulated(&self) -> Vec<String> {
        self.appliances.keys().cloned().collect()
    }

    /// Names of the bridge appliances.
    pub fn bridges(&self) -> Vec<String> {
        let bridges = self.topology.appliances.iter().filter(|a| a.kind == ApplianceKind::Bridge);
        bridges.map(|appliance| appliance.name.clone()).collect()
    }

    /// Makes a pair of an appliance hang, with its carrier up, or wakes it up; the instant (ns) at which that took effect.
    ///
    /// # Errors
    /// When the appliance isn't there, can't hang, or refuses.
    pub fn hang(&mut self, appliance: &str, pair: &str, hangs: bool) -> Result<u64> {
        if let Some(wires) = self.wires.get_mut(appliance) {
            return wires.hang(pair, hangs);
        }
        let change = Change { pair: Some(pair.to_owned()), frozen: Some(hangs), ..Change::default() };
        self.change(appliance, change)
    }

    /// Changes an emulated appliance; the instant (ns) at which that took effect.
    ///
    /// # Errors
    /// When it isn't there or refuses.
    pub fn change(&mut self, appliance: &str, change: Change) -> Result<u64> {
        self.appliance(appliance)?.ask(&appliance::Request::Set(change), SOON)
    }

    /// Counters and complaints of an emulated appliance.
    ///
    /// # Errors
    /// When it isn't there.
    pub fn appliance_report(&mut self, name: &str) -> Result<appliance::Report> {
        self.appliance(name)?.ask(&appliance::Request::Report, SOON)
    }

    /// The sessions that all emulated appliances saw.
    ///
    /// # Errors
    /// When one fails.
    pub fn appliance_sessions(&mut self) -> Result<Vec<appliance::Session>> {
        let mut sessions = Vec::new();
        for agent in self.appliances.values_mut() {
            sessions.extend(agent.ask::<Vec<appliance::Session>>(&appliance::Request::Sessions, SOON)?);
        }
        Ok(sessions)
    }

    /// Empties the session tables of all emulated appliances.
    ///
    /// # Errors
    /// When one fails.
    pub fn forget_sessions(&mut self) -> Result<()> {
        for agent in self.appliances.values_mut() {
            agent.ask::<serde_json::Value>(&appliance::Request::Forget, SOON)?;
        }
        Ok(())
    }

    /// What the rules of a bridge appliance counted.
    ///
    /// # Errors
    /// When nft fails.
    pub fn bridge_counted(&self, name: &str) -> Result<bridge::Counted> {
        bridge::counted(&self.run, &appliance_space(name))
    }

    /// Makes bridge appliances strict or liberal about TCP windows.
    ///
    /// # Errors
    /// When a parameter can't be written.
    pub fn bridges_liberal(&self, liberal: bool) -> Result<()> {
        self.bridges()
            .iter()
            .try_for_each(|name| bridge::set_liberal(&self.run, &appliance_space(name), liberal))
    }

    /// Takes the appliance's ends of a pair's cables down or up; the instant (ns) before the change.
    ///
    /// # Errors
    /// When ip fails.
    pub fn set_pair_cables(&self, pair: &str, up: bool) -> Result<u64> {
        let appliance = self
            .topology
            .appliance_of(pair)
            .ok_or_else(|| Error::Unsupported(format!("no appliance has pair {pair}")))?;
        let ports = ports_of(&self.topology, appliance).into_iter().find(|ports| ports.name == pair);
        let state = if up { "up" } else { "down" };
        let lines: Vec<String> = ports
            .iter()
            .flat_map(|ports| [&ports.lan, &ports.wan])
            .map(|port| format!("link set dev {port} {state}"))
            .collect();
        let at = crate::clock::now_ns();
        self.run.ip(Some(&appliance_space(&appliance.name)), &lines)?;
        Ok(at)
    }

    // ---- hosts and traffic ----

    /// What a side's edge saw.
    ///
    /// # Errors
    /// When it is gone.
    pub fn edge_report(&mut self, side: Side) -> Result<edge::Report> {
        self.edges[side as usize].ask(&edge::Request::Report, SOON)
    }

    /// Starts sending garbage from a side; [`Lab::injected`] waits for its end.
    ///
    /// # Errors
    /// When the edge is gone.
    pub fn inject(&mut self, side: Side, injection: edge::Injection) -> Result<()> {
        self.edges[side as usize].tell(&edge::Request::Inject(injection))
    }

    /// Waits until the garbage is sent.
    ///
    /// # Errors
    /// When sending failed.
    pub fn injected(&mut self, side: Side) -> Result<edge::Injected> {
        self.edges[side as usize].hear(LATER)
    }

    /// Draws `count` sessions: paths in turn, hosts at random, every second one IPv6.
    pub fn draw_sessions(&mut self, rng: &mut Rng, count: u64, opened_by: Side, paths: &[Path]) -> Vec<Ends> {
        let hosts = u64::from(self.topology.hosts);
        (0..count)
            .map(|at| {
                let path = &paths[at as usize % paths.len()];
                let ipv6 = at as usize / paths.len() % 2 == 1;
                let id = self.next_session;
                self.next_session += 1;
                let port = CLIENT_PORTS + (id % 40000) as u16;
                let client = path.host(opened_by, rng.below(hosts) as u32, ipv6);
                let server = path.host(opened_by.other(), rng.below(hosts) as u32, ipv6);
                Ends { id, client: SocketAddr::new(client, port), server: SocketAddr::new(server, PORT) }
            })
            .collect()
    }

    /// Starts TCP sessions whose clients are on `side`.
    ///
    /// # Errors
    /// When the agent is gone.
    pub fn start_tcp(&mut self, side: Side, name: &str, sessions: &[Ends], work: tcp::Work) -> Result<()> {
        let request = traffic::Request::Tcp { name: name.into(), sessions: sessions.to_vec(), work };
        self.traffic[side as usize].ask::<serde_json::Value>(&request, SOON).map(drop)
    }

    /// Starts UDP sessions whose clients are on `side`.
    ///
    /// # Errors
    /// When the agent is gone.
    pub fn start_udp(&mut self, side: Side, name: &str, sessions: &[Ends], pace: udp::Pace) -> Result<()> {
        let request = traffic::Request::Udp { name: name.into(), sessions: sessions.to_vec(), pace };
        self.traffic[side as usize].ask::<serde_json::Value>(&request, SOON).map(drop)
    }

    /// Ends the sessions of these names on both sides and fetches their reports.
    ///
    /// # Errors
    /// When an agent is gone or the sessions don't end.
    pub fn finish(&mut self, names: &[&str]) -> Result<Finished> {
        self.collect(names, true)
    }

    /// The same for sessions that have an end of their own.
    ///
    /// # Errors
    /// When an agent is gone or the sessions don't end.
    pub fn finish_all(&mut self, names: &[&str]) -> Result<Finished> {
        self.collect(names, false)
    }

    fn collect(&mut self, names: &[&str], early: bool) -> Result<Finished> {
        let mut all = Finished::default();
        for agent in &mut self.traffic {
            for name in names {
                agent.tell(&traffic::Request::Finish { name: (*name).into(), early })?;
            }
        }
        for agent in &mut self.traffic {
            for _ in names {
                let finished: Finished = agent.hear(LATER)?;
                all.tcp.extend(finished.tcp);
                all.udp.extend(finished.udp);
            }
        }
        Ok(all)
    }

    /// What the servers on `side` have seen.
    ///
    /// # Errors
    /// When the agent is gone.
    pub fn served(&mut self, side: Side) -> Result<Served> {
        self.traffic[side as usize].ask(&traffic::Request::Served, SOON)
    }

    /// A program in the hosts' namespace of a side.
    pub fn host_command(&self, side: Side, program: &str) -> Command {
        self.run.command(side_name(side), program)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for child in [&mut self.controller, &mut self.pipeline].into_iter().flatten() {
            // The data plane of a site that goes away needs no farewell.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn program(programs: &Programs, name: &str) -> Result<PathBuf> {
    let path = programs.directory.join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(Error::MissingProgram { program: name.into(), dir: programs.directory.clone() })
    }
}

fn spawn_logged(mut command: Command, log: &FilePath) -> Result<Child> {
    let file =
        File::options().create(true).append(true).open(log).doing(|| format!("opening {}", log.display()))?;
    let again = file.try_clone().doing(|| format!("opening {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(file).stderr(again);
    command.spawn().doing(|| format!("starting {command:?}"))
}

fn pair_number(topology: &Topology, name: &str) -> usize {
    topology.pairs().position(|(_, pair)| pair.name == name).unwrap_or(usize::MAX)
}

fn ports_of(topology: &Topology, appliance: &Appliance) -> Vec<PairPorts> {
    let ports = |name: &String| {
        let number = pair_number(topology, name);
        PairPorts {
            name: name.clone(),
            lan: plan::pair_port(topology, number, Side::Lan).name,
            wan: plan::pair_port(topology, number, Side::Wan).name,
        }
    };
    appliance.pairs.iter().map(ports).collect()
}

fn make_spaces(run: &Run, topology: &Topology, cables: bool) -> Result<()> {
    let mut plain: Vec<String> = topology.appliances.iter().map(|a| appliance_space(&a.name)).collect();
    if !cables {
        plain.push("box".into());
    }
    let hosts = ["lan".to_string(), "wan".to_string()];
    let lines: Vec<String> =
        plain.iter().chain(&hosts).map(|s| format!("netns add {}", run.name(s))).collect();
    run.ip(None, &lines)?;
    for space in &plain {
        // Nothing but what is sent through may appear on these wires.
        run.set_parameters(
            space,
            &[("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")],
        )?;
    }
    for space in &hosts {
        run.set_parameters(
            space,
            &[
                ("net/ipv4/conf/all/rp_filter", "0"),
                ("net/ipv4/conf/default/rp_filter", "0"),
                ("net/ipv4/ip_local_port_range", "10000 19999"),
                // IPv6 binds to addresses of a local route only with this; IPv4 does anyway.
                ("net/ipv6/ip_nonlocal_bind", "1"),
                ("net/ipv6/conf/all/accept_ra", "0"),
                ("net/ipv6/conf/default/accept_ra", "0"),
                ("net/ipv6/conf/default/accept_dad", "0"),
                ("net/ipv6/conf/default/addr_gen_mode", "1"),
            ],
        )?;
    }
    Ok(())
}

fn lay_cables(run: &Run, topology: &Topology, cables: bool, cabling: &Cabling) -> Result<()> {
    let mut lines = Vec::new();
    let mut cable = |one: (&str, &str), other: (&str, &str)| {
        lines.push(format!(
            "link add {} netns {} type veth peer name {} netns {}",
            one.1,
            run.name(one.0),
            other.1,
            run.name(other.0)
        ));
    };
    let swap = |pair: &str, side: Side| match &cabling.swapped_wan {
        Some((a, b)) if side == Side::Wan && pair == a => b.clone(),
        Some((a, b)) if side == Side::Wan && pair == b => a.clone(),
        _ => pair.to_string(),
    };
    let far_end =
        |pair: &str| topology.appliance_of(pair).map(|a| appliance_space(&a.name)).unwrap_or_default();
    if !cables {
        for (number, (_, pair)) in topology.pairs().enumerate() {
            for side in sides() {
                let cabled = swap(&pair.name, side);
                let far = plan::pair_port(topology, pair_number(topology, &cabled), side).name;
                let near = plan::pair_port(topology, number, side).name;
                cable(("box", &near), (&far_end(&cabled), &far));
            }
        }
    }
    let mut pairs = topology.pairs().map(|(_, pair)| pair.name.as_str());
    for link in 0..topology.links.len() {
        let pair = pairs.next().unwrap_or_default();
        for side in sides() {
            let near = plan::uplink(link);
            if cables {
                let far = plan::pair_port(topology, link, side).name;
                cable((side_name(side), &near), (&far_end(pair), &far));
            } else {
                cable((side_name(side), &near), ("box", &plan::link_port(topology, link, side).name));
            }
        }
    }
    run.ip(None, &lines)?;
    let mut sizes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for port in plan::box_ports(topology) {
        if !cables {
            sizes
                .entry("box".into())
                .or_default()
                .push(format!("link set dev {} mtu {}", port.name, port.mtu));
        }
    }
    for (number, (_, pair)) in topology.pairs().enumerate() {
        if cables && number >= topology.links.len() {
            continue;
        }
        for side in sides() {
            let port = plan::pair_port(topology, number, side);
            let line = format!("link set dev {} mtu {}", port.name, port.mtu);
            sizes.entry(far_end(&pair.name)).or_default().push(line);
        }
    }
    sizes.iter().try_for_each(|(space, lines)| run.ip(Some(space), lines))
}

fn bring_up(run: &Run, space: &str, ports: impl Iterator<Item = String>) -> Result<()> {
    let ports: Vec<String> = ports.collect();
    run.inside(space, || ports.iter().try_for_each(|port| raw::offloads_off(port)))?;
    let lines: Vec<String> = ports.iter().map(|port| format!("link set dev {port} up")).collect();
    run.ip(Some(space), &lines)
}

/// Tags that the kernel keeps beside a frame are not seen by XDP at the other end of a veth.
fn put_tags_into_frames(run: &Run, topology: &Topology) -> Result<()> {
    let uplinks: Vec<String> = (0..topology.links.len()).map(plan::uplink).collect();
    let hosts = sides().map(|side| (side_name(side).to_owned(), uplinks.clone()));
    let appliances = topology.appliances.iter().map(|appliance| {
        let ports = ports_of(topology, appliance).into_iter().flat_map(|pair| [pair.lan, pair.wan]);
        (appliance_space(&appliance.name), ports.collect())
    });
    for (space, ports) in hosts.into_iter().chain(appliances) {
        run.inside(&space, || {
            ports.iter().try_for_each(|port| {
                swpipe::io::offload::turn_off(port).map_err(|error| Error::Unsupported(error.to_string()))
            })
        })?;
    }
    Ok(())
}

fn host_side(run: &Run, topology: &Topology, plan: &Plan, side: Side) -> Result<()> {
    let space = side_name(side);
    let mut lines = vec!["link set dev lo up".to_string()];
    let mut devices = Vec::new();
    for link in 0..topology.links.len() {
        let device = plan::uplink(link);
        let mac = plan::mac_text(plan::mac(side, link, 0));
        let mtu = plan::link_port(topology, link, side).mtu;
        lines.push(format!("link set dev {device} address {mac} mtu {mtu}"));
        devices.push(device);
    }
    for interface in &plan.interfaces {
        if let Some(tagger) = &interface.tagger {
            let mac = plan::mac_text(host_mac(side, interface));
            lines.push(format!("link add {} type veth peer name {tagger}", interface.device));
            lines.push(format!("link set dev {} address {mac} mtu {}", interface.device, topology.mtu));
            lines.push(format!("link set dev {tagger} mtu {}", topology.mtu));
            devices.extend([interface.device.clone(), tagger.clone()]);
        }
    }
    run.ip(Some(space), &lines)?;
    if plan.interfaces.iter().any(|interface| interface.tagger.is_some()) {
        let taggers = plan.interfaces.iter().filter_map(|interface| interface.tagger.as_ref());
        let quiet: Vec<String> = taggers.map(|t| format!("net/ipv6/conf/{t}/disable_ipv6")).collect();
        let quiet: Vec<(&str, &str)> = quiet.iter().map(|path| (path.as_str(), "1")).collect();
        run.set_parameters(space, &quiet)?;
    }
    bring_up(run, space, devices.into_iter())?;
    let mut lines = Vec::new();
    for (number, interface) in plan.interfaces.iter().enumerate() {
        let device = &interface.device;
        let peer = plan::mac_text(host_mac(side.other(), interface));
        for gateway in gateways(number) {
            lines.push(format!("neigh add {gateway} lladdr {peer} nud permanent dev {device}"));
        }
    }
    for path in &plan.paths {
        let number = if side == Side::Lan { path.requests } else { path.answers };
        let device = &plan.sends_by(path, side).device;
        let [gateway4, gateway6] = gateways(number);
        let mtu = topology.mtu;
        lines.push(format!("route add local {} dev lo", path.prefix4(side)));
        lines.push(format!("route add local {} dev lo", path.prefix6(side)));
        let (far4, far6) = (path.prefix4(side.other()), path.prefix6(side.other()));
        lines.push(format!("route add {far4} via {gateway4} dev {device} onlink mtu {mtu}"));
        lines.push(format!("route add {far6} via {gateway6} dev {device} onlink mtu {mtu}"));
    }
    run.ip(Some(space), &lines)
}

fn host_mac(side: Side, interface: &HostInterface) -> [u8; 6] {
    let encapsulation = if interface.tagger.is_some() { interface.encapsulation as u8 + 1 } else { 0 };
    plan::mac(side, interface.link, encapsulation)
}

/// Addresses that stand for the other side's MAC; nobody has them.
fn gateways(interface: usize) -> [String; 2] {
    [format!("100.64.0.{}", interface + 1), format!("fe80::{:x}", interface + 1)]
}

fn start_edge(run: &Run, topology: &Topology, plan: &Plan, side: Side) -> Result<Agent> {
    let uplinks = (0..topology.links.len()).map(|link| {
        let on_link = plan.interfaces.iter().filter(|interface| interface.link == link);
        let inner = on_link.filter_map(|i| {
            i.tagger.as_ref().map(|t| edge::Inner { tags: i.tags.clone(), device: t.clone() })
        });
        edge::Uplink { device: plan::uplink(link), inner: inner.collect() }
    });
    let setup = edge::Setup { side, uplinks: uplinks.collect() };
    let name = format!("edge {}", side_name(side));
    Agent::start(&name, run.agent(side_name(side), "edge"), &setup)
}

fn start_traffic(run: &Run, topology: &Topology, plan: &Plan, side: Side) -> Result<Agent> {
    let hosts = |path: &Path| {
        let path = path.clone();
        (0..topology.hosts).flat_map(move |host| [path.host(side, host, false), path.host(side, host, true)])
    };
    let addresses: Vec<IpAddr> = plan.paths.iter().flat_map(hosts).collect();
    let name = format!("traffic {}", side_name(side));
    Agent::start(&name, run.agent(side_name(side), "traffic"), &traffic::Setup { addresses })
}

/// The kernel's counters of the interfaces in the calling thread's network namespace.
///
/// # Errors
/// When they can't be read.
pub(crate) fn interface_counters() -> Result<BTreeMap<String, crate::sluice::PortCounters>> {
    // A thread's own view: /proc/self would show the process's namespace.
    let text =
        fs::read_to_string("/proc/thread-self/net/dev").doing(|| "reading interface counters".into())?;
    Ok(read_net_dev(&text))
}

/// Reads /proc/net/dev.
fn read_net_dev(text: &str) -> BTreeMap<String, crate::sluice::PortCounters> {
    let mut counters = BTreeMap::new();
    for (name, figures) in text.lines().filter_map(|line| line.split_once(':')) {
        let figures: Vec<u64> = figures.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        if let [rx_bytes, rx_packets, _, _, _, _, _, _, tx_bytes, tx_packets, ..] = figures[..] {
            let port = crate::sluice::PortCounters { rx_packets, rx_bytes, tx_packets, tx_bytes };
            counters.insert(name.trim().to_string(), port);
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_counters_are_read_by_column() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets ...\n  \
                    l1lan: 100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\n";
        let port = read_net_dev(text)["l1lan"];
        assert_eq!((port.rx_bytes, port.rx_packets, port.tx_bytes, port.tx_packets), (100, 2, 300, 4));
    }
}
