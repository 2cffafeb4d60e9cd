//! Every metric that there is: its name, what it counts, and its labels.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rises until the thing is removed or the process or data plane starts anew.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counters of steps, cumulative, with sum and count.
    Histogram,
    /// Always 1; its labels tell.
    Info,
}

impl Kind {
    /// As Prometheus calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }
}

/// A metric family.
#[derive(Debug)]
pub struct Family {
    /// Name of its series.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it tells, in one sentence without its full stop.
    pub help: &'static str,
}

impl Family {
    /// Names of its series.
    #[must_use]
    pub fn series(&self) -> Vec<String> {
        match self.kind {
            Kind::Histogram => ["bucket", "sum", "count"].map(|of| format!("{}_{of}", self.name)).to_vec(),
            _ => vec![self.name.to_owned()],
        }
    }

    /// Name without what the exposition adds to it.
    pub(super) fn stem(&self) -> &'static str {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        let name = name.strip_suffix("_info").unwrap_or(name);
        let unit = ["_seconds", "_bytes"].into_iter().find_map(|unit| name.strip_suffix(unit));
        unit.unwrap_or(name)
    }

    pub(super) fn unit(&self) -> Option<Unit> {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        match name {
            name if name.ends_with("_seconds") => Some(Unit::Seconds),
            name if name.ends_with("_bytes") => Some(Unit::Bytes),
            _ => None,
        }
    }

    pub(super) fn metric_type(&self) -> MetricType {
        match self.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
            Kind::Info => MetricType::Info,
        }
    }
}

macro_rules! families {
    ($($id:ident $kind:ident $name:literal [$($label:literal)*] $help:literal;)*) => {
        $(pub(super) const $id: Family =
            Family { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)*

        /// All of them, in the order in which they are served.
        pub const FAMILIES: &[&Family] = &[$(&$id),*];
    };
}

families! {
    BUILD Info "sluice_build_info" ["version" "target" "profile" "pipeline"]
        "Version of sluiced, and address, profile and pipeline digest of its data plane";
    CONFIGURATION Info "sluice_configuration_info" ["config_hash" "balancing_method" "steering_mode"]
        "Digest of the bucket tables of all units, method of balancing, and kind of steering header";
    START Gauge "sluice_start_time_seconds" []
        "When sluiced started, in seconds since 1970";
    READING Gauge "sluice_reading_timestamp_seconds" []
        "When the states served were read, in seconds since 1970";
    COUNTERS_STALE Gauge "sluice_counters_stale" []
        "1 where the data plane did not tell its counters, and those served are of an earlier reading";
    EVENTS Counter "sluice_events_total" ["kind" "severity"]
        "Events since the start";

    DATA_PLANE_UP Gauge "sluice_data_plane_up" []
        "1 where this controller programs the data plane and what is served is true of it";
    DATA_PLANE_STATE Gauge "sluice_data_plane_state" ["state"]
        "1 for the state of the connection to the data plane, 0 for the others";
    DATA_PLANE_WRITES Counter "sluice_data_plane_writes_total" []
        "Writes of tables that the data plane took: configurations, rebalancing and repairs";
    TABLE_ENTRIES Gauge "sluice_table_entries" ["table"]
        "Entries of the table";
    TABLE_SIZE Gauge "sluice_table_size" ["table"]
        "Entries that surely fit into the table";
    LIVENESS_SUSPENDED Gauge "sluice_liveness_suspended" []
        "1 while all pairs fail at once or the reference does, and losses are not believed";

    VERDICT_PACKETS Counter "sluice_verdict_packets_total" ["verdict" "reason"]
        "Frames by what became of them; every frame ends in exactly one";
    VERDICT_BYTES Counter "sluice_verdict_bytes_total" ["verdict" "reason"]
        "Bytes of these frames";
    RECEIVED Counter "sluice_received_packets_total" []
        "Frames received on all ports of the data plane";

    UNIT_STATE Gauge "sluice_unit_state" ["unit" "state"]
        "1 for the state of the unit, 0 for the others";
    UNIT_MODE Gauge "sluice_unit_mode" ["unit" "mode"]
        "1 for the mode of the unit, which is auto or by hand, 0 for the others";
    UNIT_INFO Info "sluice_unit_info" ["unit" "liveness_profile" "fail_action" "rebalance" "config_hash"]
        "How the unit is configured, and the digest of its bucket table";
    UNIT_FLAPS Counter "sluice_unit_flaps_total" ["unit"]
        "Times that the unit went into bypass, by its pairs or by hand";
    UNIT_LAST_CHANGE Gauge "sluice_unit_last_change_timestamp_seconds" ["unit"]
        "When the state of the unit changed last, in seconds since 1970";
    UNIT_PAIRS Gauge "sluice_unit_pairs" ["unit"]
        "Pairs of the unit";
    UNIT_PAIRS_UP Gauge "sluice_unit_pairs_up" ["unit"]
        "Pairs of the unit that carry traffic";
    UNIT_ACTIVE_PAIRS Gauge "sluice_unit_active_pairs" ["unit"]
        "Pairs that must be up, lest the unit is bypassed";
    UNIT_BUCKETS Gauge "sluice_unit_buckets" ["unit"]
        "Buckets of the unit";
    UNIT_CORES Gauge "sluice_unit_cores" ["unit"]
        "Worker cores behind each pair of the unit";

    PAIR_STATE Gauge "sluice_pair_state" ["unit" "pair" "state"]
        "1 for the state of the pair, 0 for the others";
    PAIR_INFO Info "sluice_pair_info" ["unit" "pair" "lan_port" "wan_port" "role" "liveness_profile"]
        "How the pair is configured";
    PAIR_FLAPS Counter "sluice_pair_flaps_total" ["unit" "pair"]
        "Times that the pair went from up to down";
    PAIR_LAST_CHANGE Gauge "sluice_pair_last_change_timestamp_seconds" ["unit" "pair"]
        "When the state of the pair changed last, in seconds since 1970";
    PAIR_HOLD_END Gauge "sluice_pair_hold_end_timestamp_seconds" ["unit" "pair"]
        "When the hold of a pair that flapped ends and its trial begins, in seconds since 1970; only while it is held";
    PAIR_COST Gauge "sluice_pair_cost_seconds" ["unit" "pair"]
        "What an exchange of 64 KiB through the pair would take by the statistics of its keep-alives";
    PAIR_WEIGHT Gauge "sluice_pair_weight" ["unit" "pair"]
        "Weight of the pair in force";
    PAIR_HOME_BUCKETS Gauge "sluice_pair_home_buckets" ["unit" "pair"]
        "Buckets that have their home at the pair";
    PAIR_BUCKETS Gauge "sluice_pair_buckets" ["unit" "pair"]
        "Buckets that the pair serves now";
    PAIR_SENT_PACKETS Counter "sluice_pair_sent_packets_total" ["unit" "pair"]
        "Frames sent to the appliance, without keep-alives";
    PAIR_SENT_BYTES Counter "sluice_pair_sent_bytes_total" ["unit" "pair"]
        "Bytes of these frames";
    PAIR_RETURNED_PACKETS Counter "sluice_pair_returned_packets_total" ["unit" "pair"]
        "Frames that came back from the appliance and went on to a link";
    PAIR_RETURNED_BYTES Counter "sluice_pair_returned_bytes_total" ["unit" "pair"]
        "Bytes of these frames";
    PAIR_VERDICT_PACKETS Counter "sluice_pair_verdict_packets_total" ["unit" "pair" "verdict" "reason"]
        "Frames that came in by the ports of the pair, by what became of them; without those that are 0";
    PAIR_VERDICT_BYTES Counter "sluice_pair_verdict_bytes_total" ["unit" "pair" "verdict" "reason"]
        "Bytes of these frames";

    CORE_UP Gauge "sluice_core_up" ["unit" "pair" "core"]
        "1 where the worker core behind the pair answers; only with probe-cores";
    CORE_FLAPS Counter "sluice_core_flaps_total" ["unit" "pair" "core"]
        "Times that the core went down";

    KEEPALIVES_SENT Counter "sluice_keepalives_sent_total" ["unit" "pair" "direction" "probe"]
        "Keep-alives sent: plain ones (probe pair) and those that pass the appliance's processing (probe ip)";
    KEEPALIVES Counter "sluice_keepalives_total" ["unit" "pair" "direction" "probe" "verdict"]
        "Keep-alives by how they were judged; one that is late is lost too";
    NEGATIVE Counter "sluice_negative_probes_total" ["unit" "pair" "direction" "verdict"]
        "Probes that must not come back, by whether they did";
    KEEPALIVES_CONSECUTIVE_GOOD Gauge "sluice_keepalives_consecutive_good" ["unit" "pair" "direction"]
        "Good keep-alives in a row";
    KEEPALIVES_CONSECUTIVE_LOST Gauge "sluice_keepalives_consecutive_lost" ["unit" "pair" "direction"]
        "Lost keep-alives in a row";
    KEEPALIVE_LAST_LOSS Gauge "sluice_keepalive_last_loss_timestamp_seconds" ["unit" "pair" "direction"]
        "When a keep-alive was lost last, in seconds since 1970";
    TIME_ON_PATH Histogram "sluice_time_on_path_seconds" ["unit" "pair" "direction"]
        "Time-on-path of good keep-alives, measured by the data plane";
    WINDOW_SAMPLES Gauge "sluice_time_on_path_window_samples" ["unit" "pair" "direction"]
        "Keep-alives in the window that the other sluice_time_on_path_window metrics are about";
    WINDOW_FAILED Gauge "sluice_time_on_path_window_failed" ["unit" "pair" "direction"]
        "Lost ones among them";
    WINDOW_MIN Gauge "sluice_time_on_path_window_min_seconds" ["unit" "pair" "direction"]
        "Shortest time-on-path in the window";
    WINDOW_MEAN Gauge "sluice_time_on_path_window_mean_seconds" ["unit" "pair" "direction"]
        "Average time-on-path in the window";
    WINDOW_MAX Gauge "sluice_time_on_path_window_max_seconds" ["unit" "pair" "direction"]
        "Longest time-on-path in the window";
    WINDOW_DEVIATION Gauge "sluice_time_on_path_window_deviation_seconds" ["unit" "pair" "direction"]
        "Standard deviation of time-on-path in the window, half the average for a single sample";
    WINDOW_MEDIAN Gauge "sluice_time_on_path_window_median_seconds" ["unit" "pair" "direction"]
        "Median of time-on-path in the window";
    WINDOW_P99 Gauge "sluice_time_on_path_window_p99_seconds" ["unit" "pair" "direction"]
        "99th percentile of time-on-path in the window";

    LINK_INFO Info "sluice_link_info" ["link" "lan_port" "wan_port" "description"]
        "How the link is configured";
    LINK_RECEIVED_PACKETS Counter "sluice_link_received_packets_total" ["link" "side"]
        "Frames received by the link's port of this side";
    LINK_RECEIVED_BYTES Counter "sluice_link_received_bytes_total" ["link" "side"]
        "Bytes of these frames";
    LINK_SENT_PACKETS Counter "sluice_link_sent_packets_total" ["link" "side"]
        "Frames sent by the link's port of this side";
    LINK_SENT_BYTES Counter "sluice_link_sent_bytes_total" ["link" "side"]
        "Bytes of these frames";
    LINK_VERDICT_PACKETS Counter "sluice_link_verdict_packets_total" ["link" "verdict" "reason"]
        "Frames that came in by the ports of the link, by what became of them; without those that are 0";
    LINK_VERDICT_BYTES Counter "sluice_link_verdict_bytes_total" ["link" "verdict" "reason"]
        "Bytes of these frames";

    PORT_INFO Info "sluice_port_info" ["port" "number" "lane" "interface" "speed" "role" "description"]
        "How the port is configured, and what it serves";
    PORT_CARRIER Gauge "sluice_port_carrier" ["port"]
        "1 where the port has carrier; without ports whose carrier is not known";
    PORT_MTU Gauge "sluice_port_mtu_bytes" ["port"]
        "Longest frame without its Ethernet header";
    PORT_RECEIVED_PACKETS Counter "sluice_port_received_packets_total" ["port"]
        "Frames received, as they came in";
    PORT_RECEIVED_BYTES Counter "sluice_port_received_bytes_total" ["port"]
        "Bytes of these frames";
    PORT_SENT_PACKETS Counter "sluice_port_sent_packets_total" ["port"]
        "Frames sent, keep-alives included";
    PORT_SENT_BYTES Counter "sluice_port_sent_bytes_total" ["port"]
        "Bytes of these frames, without steering headers";
    PORT_MISSED Counter "sluice_port_missed_packets_total" ["port"]
        "Frames that arrived at the interface, but found no room in the pipeline";
    PORT_LOST Counter "sluice_port_lost_packets_total" ["port"]
        "Frames that the pipeline sent, but the interface did not take";

    FLOWS Gauge "sluice_flows" []
        "Flow rules in force";
    FLOWS_OMITTED Gauge "sluice_flows_omitted" []
        "Flow rules without series of their own, since there are more than `prometheus max-flows`";
    FLOW_INFO Info "sluice_flow_info" ["flow" "priority" "action" "unit"]
        "How the flow rule is configured";
    FLOW_PACKETS Counter "sluice_flow_packets_total" ["flow"]
        "Frames that the flow rule decided about";
    FLOW_BYTES Counter "sluice_flow_bytes_total" ["flow"]
        "Bytes of these frames";
}
