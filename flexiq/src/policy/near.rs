//! The name that someone probably meant. Also compiled into the macro crate.

/// The candidate most like `given`, if one is near enough to be meant.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = given.chars().count().div_ceil(3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(given, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours) from one text to the other, ASCII case ignored:
/// the optimal string alignment distance.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.to_ascii_lowercase().chars().collect();
    let to: Vec<char> = to.to_ascii_lowercase().chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, &a) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &b) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && a == to[column - 1] && from[row - 1] == b;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = last;
        last = current;
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["max_concurrent", "max_retries", "queue", "timeout"];
        assert_eq!(nearest("max_concurent", known), Some("max_concurrent"));
        assert_eq!(nearest("max_retires", known), Some("max_retries"));
        assert_eq!(nearest("Queue", known), Some("queue"));
        assert_eq!(nearest("colour", known), None);
    }
}
