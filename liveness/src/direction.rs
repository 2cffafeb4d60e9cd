//! Which way through the appliance.

use std::fmt;
use std::ops::{Index, IndexMut};

/// A port of a pair: LAN is towards the subscribers, WAN towards the internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The pair's LAN port.
    Lan,
    /// The pair's WAN port.
    Wan,
}

/// The way of a keep-alive through the appliance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Sent through the LAN port, expected back on the WAN port.
    LanToWan,
    /// Sent through the WAN port, expected back on the LAN port.
    WanToLan,
}

impl Direction {
    /// Both, in the order in which they are probed.
    pub const BOTH: [Direction; 2] = [Direction::LanToWan, Direction::WanToLan];
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::LanToWan => "lan-to-wan",
            Direction::WanToLan => "wan-to-lan",
        })
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Lan => "lan",
            Side::Wan => "wan",
        })
    }
}

/// One value per direction, indexed by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// Of [`Direction::LanToWan`].
    pub lan_to_wan: T,
    /// Of [`Direction::WanToLan`].
    pub wan_to_lan: T,
}

impl<T> PerDirection<T> {
    /// Both values made from these.
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> PerDirection<U> {
        PerDirection { lan_to_wan: f(&self.lan_to_wan), wan_to_lan: f(&self.wan_to_lan) }
    }
}

impl<T> Index<Direction> for PerDirection<T> {
    type Output = T;

    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::LanToWan => &self.lan_to_wan,
            Direction::WanToLan => &self.wan_to_lan,
        }
    }
}

impl<T> IndexMut<Direction> for PerDirection<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::LanToWan => &mut self.lan_to_wan,
            Direction::WanToLan => &mut self.wan_to_lan,
        }
    }
}
