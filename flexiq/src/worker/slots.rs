//! Room: free slots by kind, and each task's share of this worker. What a claim may take is told before it is sent, so
//! that nothing is claimed and put back.

use crate::task::Kind;

/// Free room of one worker.
#[derive(Debug)]
pub(super) struct Slots {
    free: [u32; 2],
    tasks: Vec<Share>,
}

/// One task's use of the worker.
#[derive(Clone, Copy, Debug)]
struct Share {
    kind: Kind,
    /// Jobs of it that may still start here.
    left: u32,
}

/// Room that a claim under way may fill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    /// Slots by kind.
    pub(super) slots: [u32; 2],
    /// Tasks, by index, and how many of each.
    pub(super) tasks: Vec<(usize, u32)>,
}

/// A part of the room that several want.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) weight: u32,
    /// Of all that still want some, this one too.
    pub(super) of: u32,
}

impl Part {
    /// All of it.
    pub(super) const ALL: Self = Self { weight: 1, of: 1 };

    fn of(self, free: u32) -> u32 {
        let part = (u64::from(free) * u64::from(self.weight)).div_ceil(u64::from(self.of.max(1)));
        u32::try_from(part).unwrap_or(u32::MAX)
    }
}

/// The index of a kind in arrays of slots.
pub(super) const fn slot_of(kind: Kind) -> usize {
    match kind {
        Kind::Async => 0,
        Kind::Plain => 1,
    }
}

impl Slots {
    /// Slots by kind, and by task its kind and `max_in_flight_per_task`.
    pub(super) fn new(slots: [u32; 2], tasks: impl IntoIterator<Item = (Kind, Option<u32>)>) -> Self {
        let tasks =
            tasks.into_iter().map(|(kind, most)| Share { kind, left: most.unwrap_or(u32::MAX) }).collect();
        Self { free: slots, tasks }
    }

    /// Whether a job of this task could start now.
    pub(super) fn has_room(&self, task: usize) -> bool {
        self.room(task) > 0
    }

    fn room(&self, task: usize) -> u32 {
        let share = self.tasks[task];
        share.left.min(self.free[slot_of(share.kind)])
    }

    /// Takes room for a claim of these tasks: a `part` of what is free, rounded up, and nothing of a kind that is `kept`
    /// for somebody else.
    ///
    /// The room counts as used until it is given back: nothing is promised twice.
    pub(super) fn offer(&mut self, tasks: &[usize], part: Part, kept: [bool; 2]) -> Option<Offer> {
        let mut offer = Offer::default();
        for &task in tasks {
            let slot = slot_of(self.tasks[task].kind);
            if kept[slot] {
                continue;
            }
            let share = part.of(self.free[slot]);
            let room = self.tasks[task].left.min(share);
            if room > 0 {
                offer.slots[slot] = share;
                offer.tasks.push((task, room));
            }
        }
        if offer.tasks.is_empty() {
            return None;
        }
        for (slot, share) in offer.slots.iter().enumerate() {
            self.free[slot] -= share;
        }
        for &(task, room) in &offer.tasks {
            self.tasks[task].left -= room;
        }
        Some(offer)
    }

    /// Gives back the whole room of a claim that is answered.
    pub(super) fn take_back(&mut self, offer: &Offer) {
        for (slot, share) in offer.slots.iter().enumerate() {
            self.free[slot] += share;
        }
        for &(task, room) in &offer.tasks {
            self.tasks[task].left += room;
        }
    }

    /// A job of this task starts.
    pub(super) fn fill(&mut self, task: usize) {
        let share = &mut self.tasks[task];
        share.left -= 1;
        self.free[slot_of(share.kind)] -= 1;
    }

    /// A job of this task has ended.
    pub(super) fn free(&mut self, task: usize) {
        let share = &mut self.tasks[task];
        share.left += 1;
        self.free[slot_of(share.kind)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_offered_no_more_than_its_share_of_the_worker() {
        let mut slots =
            Slots::new([10, 4], [(Kind::Async, Some(3)), (Kind::Async, None), (Kind::Plain, None)]);
        let offer = slots.offer(&[0, 1, 2], Part::ALL, [false; 2]).expect("there is room");
        assert_eq!(offer, Offer { slots: [10, 4], tasks: vec![(0, 3), (1, 10), (2, 4)] });
    }

    #[test]
    fn room_is_never_promised_twice() {
        let mut slots = Slots::new([10, 0], [(Kind::Async, None), (Kind::Async, None)]);
        let first = slots.offer(&[0], Part { weight: 1, of: 2 }, [false; 2]).expect("there is room");
        let second = slots.offer(&[1], Part::ALL, [false; 2]).expect("there is room");
        assert_eq!((first.slots[0], second.slots[0]), (5, 5));
        assert!(!slots.has_room(0) && slots.offer(&[0, 1], Part::ALL, [false; 2]).is_none());
        slots.take_back(&first);
        assert!(slots.has_room(1));
    }

    #[test]
    fn a_full_kind_leaves_the_other_kind_its_room() {
        let mut slots = Slots::new([1, 1], [(Kind::Async, None), (Kind::Plain, None)]);
        slots.fill(0);
        assert!(!slots.has_room(0) && slots.has_room(1));
        assert_eq!(
            slots.offer(&[0, 1], Part::ALL, [false; 2]).expect("a plain slot is free").tasks,
            [(1, 1)]
        );
    }

    #[test]
    fn a_weight_is_a_part_of_what_is_free_and_nobody_gets_nothing() {
        let mut slots = Slots::new([8, 0], [(Kind::Async, None), (Kind::Async, None)]);
        let heavy = slots.offer(&[0], Part { weight: 3, of: 4 }, [false; 2]).expect("there is room");
        let light = slots.offer(&[1], Part { weight: 1, of: 1 }, [false; 2]).expect("there is room");
        assert_eq!((heavy.slots[0], light.slots[0]), (6, 2));
        slots.take_back(&heavy);
        slots.take_back(&light);
        let least = slots.offer(&[0], Part { weight: 1, of: 1_000 }, [false; 2]).expect("there is room");
        assert_eq!(least.slots[0], 1);
    }

    #[test]
    fn what_is_kept_for_another_is_not_offered() {
        let mut slots = Slots::new([2, 1], [(Kind::Async, None), (Kind::Plain, None)]);
        assert_eq!(slots.offer(&[0, 1], Part::ALL, [true, false]).expect("plain").tasks, [(1, 1)]);
        assert!(slots.offer(&[0], Part::ALL, [true, false]).is_none());
    }

    #[test]
    fn a_share_that_is_used_up_opens_again_when_a_job_ends() {
        let mut slots = Slots::new([10, 0], [(Kind::Async, Some(1))]);
        slots.fill(0);
        assert!(!slots.has_room(0));
        slots.free(0);
        assert!(slots.has_room(0));
    }
}
