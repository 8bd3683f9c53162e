//! How states and their reasons are written down as numbers, alike in every store. What is in a store is for ever: only
//! add.

use crate::job::{DeadReason, ScheduledReason, State};
use crate::store::unique::Release;

/// The number of a state.
pub(crate) mod state {
    pub(crate) const SCHEDULED: u8 = 0;
    pub(crate) const READY: u8 = 1;
    pub(crate) const RUNNING: u8 = 2;
    pub(crate) const SUCCEEDED: u8 = 3;
    pub(crate) const DEAD: u8 = 4;
    pub(crate) const CANCELLED: u8 = 5;
    pub(crate) const EXPIRED: u8 = 6;
}

/// A state without its reason: what a filter compares.
pub fn state_code(state: State) -> u8 {
    match state {
        State::Scheduled(_) => state::SCHEDULED,
        State::Ready => state::READY,
        State::Running => state::RUNNING,
        State::Succeeded => state::SUCCEEDED,
        State::Dead(_) => state::DEAD,
        State::Cancelled => state::CANCELLED,
        State::Expired => state::EXPIRED,
    }
}

pub(crate) fn scheduled_code(reason: ScheduledReason) -> u8 {
    match reason {
        ScheduledReason::Delay => 0,
        ScheduledReason::Retry => 1,
        ScheduledReason::Deferral => 2,
        ScheduledReason::Limit => 3,
    }
}

pub(crate) fn dead_code(reason: DeadReason) -> u8 {
    match reason {
        DeadReason::Failures => 0,
        DeadReason::Never => 1,
        DeadReason::Deferrals => 2,
        DeadReason::Losses => 3,
        DeadReason::Decode => 4,
    }
}

/// The number of what frees a unique key.
pub(crate) mod release {
    pub(crate) const AT_END: u8 = 0;
    pub(crate) const AT_START: u8 = 1;
    pub(crate) const AFTER: u8 = 2;
}

pub(crate) fn release_code(release: Release) -> u8 {
    match release {
        Release::AtEnd { .. } => release::AT_END,
        Release::AtStart { .. } => release::AT_START,
        Release::After(_) => release::AFTER,
    }
}

/// The state that two numbers mean.
pub(crate) fn read_state(state: u8, reason: u8) -> Option<State> {
    Some(match (state, reason) {
        (state::SCHEDULED, 0) => State::Scheduled(ScheduledReason::Delay),
        (state::SCHEDULED, 1) => State::Scheduled(ScheduledReason::Retry),
        (state::SCHEDULED, 2) => State::Scheduled(ScheduledReason::Deferral),
        (state::SCHEDULED, 3) => State::Scheduled(ScheduledReason::Limit),
        (state::READY, _) => State::Ready,
        (state::RUNNING, _) => State::Running,
        (state::SUCCEEDED, _) => State::Succeeded,
        (state::DEAD, 0) => State::Dead(DeadReason::Failures),
        (state::DEAD, 1) => State::Dead(DeadReason::Never),
        (state::DEAD, 2) => State::Dead(DeadReason::Deferrals),
        (state::DEAD, 3) => State::Dead(DeadReason::Losses),
        (state::DEAD, 4) => State::Dead(DeadReason::Decode),
        (state::CANCELLED, _) => State::Cancelled,
        (state::EXPIRED, _) => State::Expired,
        _ => return None,
    })
}
