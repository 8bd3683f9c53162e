//! What a Redis does to a fleet: it refuses, starts anew, falls silent, fills up, forgets. Real servers, and real time.

mod acl;
mod disturbed;
mod half_open;
mod refusals;
mod restarts;
mod stage;
mod tls;
mod told;
mod tries;
