//! Where the contract leaves a store free, the model does as one of them does.

/// Whose manner the model has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// One file, and one guard for all of it. A turn makes its queue known. An enqueue tells the first thing that is wrong,
    /// in the order of its jobs.
    #[default]
    Sqlite,
    /// Each queue lies by itself, with a guard of its own, and is known when a worker says that it serves it or a job is
    /// enqueued. An enqueue looks for its ids in the other queues, then in its own, and then for room. A turn that is
    /// answered again no longer knows what a cap counts, and says that one counts all. Each queue has a copy of what holds:
    /// who brings it notices who is silent, and says when the next will be. A claim looks for the silent only then. A turn
    /// prunes the ends that it has added to, and leaves the others to the beats. Holds that are over are forgotten by a
    /// beat, and not by a claim. Each named limit has a guard of its own. A list has shorter names of partitions first.
    Redis,
}
