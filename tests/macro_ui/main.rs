//! What the compiler says of tasks that are written wrongly, and that those written rightly compile and run.

#[test]
fn messages_tell_what_to_type() {
    let cases = trybuild::TestCases::new();
    cases.pass("macro_ui/pass/*.rs");
    cases.compile_fail("macro_ui/fail/*.rs");
}
