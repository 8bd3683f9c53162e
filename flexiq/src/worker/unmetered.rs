//! A meter that measures nothing and weighs nothing: for a build without the feature `metrics`.

use super::plan::Plan;
use crate::clock::Clock;
use crate::job::Outcome;
use crate::store::Claimed;

#[derive(Debug)]
pub(super) struct Meter;

#[derive(Clone, Copy, Debug)]
pub(super) struct Begun;

impl Meter {
    pub(super) fn new(_: &Plan, _: &Clock) -> Self {
        Self
    }

    pub(super) fn started(&mut self, _: usize, _: &Claimed) -> Begun {
        Begun
    }

    pub(super) fn ended(&mut self, _: usize, _: Begun, _: &Outcome) {}
}
