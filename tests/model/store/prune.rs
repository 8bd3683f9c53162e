//! prune: what has been kept long enough goes, and what a queue holds above its number.

use flexiq::internals::{Name, Timestamp};
use flexiq::{JobId, State};

use super::world::World;

/// Whether a state is this end.
type End = fn(State) -> bool;

/// Each end, and how many jobs of it a queue keeps.
const KEPT: [(End, usize); 4] = [
    (|state| matches!(state, State::Succeeded), 100_000),
    (|state| matches!(state, State::Dead(_)), 10_000),
    (|state| matches!(state, State::Cancelled), 10_000),
    (|state| matches!(state, State::Expired), 10_000),
];

/// Prunes at most `most` jobs of each end that has grown: those above the number, else those whose time is over. What would go first
/// by time goes first, then by id.
pub(super) fn prune(
    world: &mut World,
    now: Timestamp,
    queue: &Name,
    most: usize,
    has_grown: impl Fn(State) -> bool,
) {
    for (is_it, kept) in KEPT {
        if !world.of_queue(queue).any(|record| is_it(record.state) && has_grown(record.state)) {
            continue;
        }
        let mut ended: Vec<(Timestamp, JobId)> = world
            .of_queue(queue)
            .filter(|record| is_it(record.state))
            .filter_map(|record| Some((record.kept_until?, record.id)))
            .collect();
        ended.sort_unstable();
        let excess = ended.len().saturating_sub(kept);
        let over = ended.iter().take_while(|(until, _)| *until <= now).count();
        let gone = if excess > 0 { excess } else { over };
        for (_, id) in ended.into_iter().take(gone.min(most)) {
            world.jobs.remove(&id);
        }
    }
}
