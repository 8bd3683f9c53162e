//! A crate that only this line names brings its tasks along.

use my_tasks as _;

use flexiq::internals::Registry;

#[test]
fn a_crate_that_is_named_once_brings_all_its_tasks() {
    let linked = Registry::linked().expect("no two of one name");
    let tasks: Vec<_> = linked.iter().map(|task| (task.name, task.queue, task.place.module)).collect();
    assert_eq!(tasks, [("greet", "greetings", "my_tasks"), ("part", "default", "my_tasks::inner")]);
}
