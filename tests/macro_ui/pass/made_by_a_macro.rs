#![deny(warnings)]

macro_rules! exporter {
    ($visibility:vis $name:ident, $queue:literal, $limit:expr, $of:ty, $returns:ty) => {
        #[flexiq::task(queue = $queue, max_in_flight_per_task = $limit)]
        $visibility async fn $name(value: $of, more: u8) -> $returns {
            let _ = (value, more);
            Ok(())
        }
    };
}

exporter!(pub export, "exports", 3, Vec<String>, Result<(), String>);
exporter!(import, "imports", 3, String, anyhow::Result<()>);

fn main() {
    let _ = (enqueue_export, enqueue_import);
    assert_eq!(task_export().queue(), "exports");
}
