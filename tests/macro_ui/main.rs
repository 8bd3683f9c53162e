//! What the compiler says of tasks that are written wrongly, and that those written rightly compile and run.
//!
//! Half of each message is rustc's, and changes with it. To renew them, and then read the difference:
//! `TRYBUILD=overwrite cargo test -p flexiq-tests --test macro_ui`.

#[test]
fn messages_tell_what_to_type() {
    let cases = trybuild::TestCases::new();
    cases.pass("macro_ui/pass/*.rs");
    cases.compile_fail("macro_ui/fail/*.rs");
}
