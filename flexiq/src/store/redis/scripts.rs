//! The scripts, each a verb or a step of one, joined with the parts that they share. A turn has parts of its own.

use std::sync::LazyLock;

/// A script, and the hash that a server knows it by.
pub(super) struct Script {
    pub(super) code: String,
    pub(super) hash: String,
}

impl Script {
    fn of(parts: &[&str]) -> Self {
        let code = parts.join("\n");
        let hash = redis::Script::new(&code).get_hash().to_owned();
        Self { code, hash }
    }
}

macro_rules! of_queue {
    ($($name:ident $($part:tt),+;)*) => {$(
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::of(&[
            include_str!("lua/lib/base.lua"),
            include_str!("lua/lib/queue.lua"),
            // What a function takes from outside is searched for when it is made, and found at once in its own surroundings.
            "return (function()",
            include_str!("lua/lib/jobs.lua"),
            include_str!("lua/lib/story.lua"),
            include_str!("lua/lib/moves.lua"),
            include_str!("lua/lib/life.lua"),
            include_str!("lua/lib/gates.lua"),
            include_str!("lua/lib/partitions.lua"),
            include_str!("lua/lib/holds.lua"),
            include_str!("lua/lib/guard.lua"),
            include_str!("lua/lib/bells.lua"),
            include_str!("lua/lib/room.lua"),
            $(part_of_queue!($part)),+,
            "end)()",
        ]));
    )*};
}

/// A file, or a line of code between files.
macro_rules! part_of_queue {
    ([$code:literal]) => {
        $code
    };
    ($file:literal) => {
        include_str!(concat!("lua/", $file, ".lua"))
    };
}

macro_rules! of_fleet {
    ($($name:ident $file:literal)*) => {$(
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::of(&[
            include_str!("lua/lib/base.lua"),
            include_str!("lua/lib/fleet.lua"),
            include_str!("lua/lib/guard.lua"),
            include_str!("lua/lib/settle.lua"),
            include_str!(concat!("lua/", $file, ".lua")),
        ]));
    )*};
}

macro_rules! of_limit {
    ($($name:ident $file:literal)*) => {$(
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::of(&[
            include_str!("lua/lib/base.lua"),
            include_str!("lua/lib/limit.lua"),
            include_str!("lua/lib/guard.lua"),
            include_str!("lua/lib/gates.lua"),
            include_str!("lua/lib/line.lua"),
            include_str!(concat!("lua/", $file, ".lua")),
        ]));
    )*};
}

of_queue! {
    ENQUEUE "lib/unique", "replace", "enqueue";
    TURN "lib/unique", "lib/keyed", "lib/house", "finish", "heads", "turns", "claim", "lib/schedules", "turn";
    EXTEND "lib/unique", "lib/keyed", "lib/house", "lib/schedules", "extend";
    ENTER "enter";
    LEAVE "leave";
    LEAVE_LINE "leave_line";
    ALARM "alarm";
    KNOW "lib/schedules", "know";
    SCHEDULE "lib/schedules", "schedule";
    TICK "lib/schedules", "lib/unique", ["local function store_batches(ARGV)"], "replace", "enqueue", ["end"], "tick";
    FORGET "forget";
    BEAT "beat";
    RESUME "resume";
    CANCEL "lib/unique", "lib/keyed", "cancel";
    CANCEL_PARTITION "lib/unique", "lib/keyed", "cancel_partition";
    CALL "call";
    RETRY "lib/unique", "lib/keyed", "retry";
    DELETE "lib/unique", "lib/keyed", "lib/house", "delete";
    READ "read";
    LIST "list";
    EXPLAIN "lib/shut", "explain";
    STATS "lib/shut", "stats";
    CHECK "check/found", "check/jobs", "check/partitions", "check/places", "check/counts", "check/bells", "check/room", "check";
    COPY "copy";
    KEYS_OF_QUEUE "keys";
    TELL "tell";
    STORY "story";
    ENDED "ended";
}

of_fleet! {
    FLEET_OPEN "fleet_open"
    FLEET_REGISTER "fleet_register"
    FLEET_BEAT "fleet_beat"
    FLEET_SETTLE "fleet_settle"
    FLEET_RETIRE "fleet_retire"
    FLEET_LIMIT "fleet_limit"
    FLEET_EXPLAIN "fleet_explain"
    FLEET_STATS "fleet_stats"
    FLEET_LIMITS "fleet_limits"
    FLEET_VERSION "fleet_version"
    KEYS_OF_FLEET "keys"
    FLEET_SAMPLE "fleet_sample"
    FLEET_NAME "fleet_name"
    FLEET_UNNAME "fleet_unname"
}

of_limit! {
    ACQUIRE "acquire"
    GIVE_BACK "give_back"
    RENEW "renew"
    CHECK_LIMIT "check_limit"
    KEYS_OF_LIMIT "keys"
}
