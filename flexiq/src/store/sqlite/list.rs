//! list: a page of jobs, by the orders that the indexes have.

use rusqlite::{Connection, params};

use super::codes::{read_id, state, state_code};
use super::lanes::{LaneId, QueueId, read_name};
use super::read;
use crate::clock::Timestamp;
use crate::job::JobId;
use crate::name::Name;
use crate::store::list::{Filter, Listed, MOST_LOOKED_AT, Page, Reached};

pub(super) fn list(connection: &Connection, filter: &Filter) -> rusqlite::Result<Page> {
    let mut queues = queues(connection, filter)?.into_iter();
    let Some((queue, name)) = queues.next() else { return Ok(Page::default()) };
    let reached = filter.after.as_ref().filter(|reached| reached.queue == name);
    let mut list = List { connection, queue, filter, looked_at: 0, page: Page::default() };
    for state in state::SCHEDULED..=state::EXPIRED {
        let is_over = reached.is_some_and(|reached| state < reached.state);
        if is_over || filter.state.is_some_and(|wanted| state_code(wanted) != state) {
            continue;
        }
        let last = reached.filter(|reached| reached.state == state).and_then(|reached| reached.last.as_ref());
        let stopped_at = match state {
            state::READY => list.ready(last)?,
            _ => list.by_moment(state, last)?,
        };
        if let Some(last) = stopped_at {
            list.page.reached = Some(Reached { queue: name, state, last: Some(last) });
            return Ok(list.page);
        }
    }
    list.page.reached =
        queues.next().map(|(_, queue)| Reached { queue, state: state::SCHEDULED, last: None });
    Ok(list.page)
}

/// The queue that the page is of, and the one behind it.
fn queues(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<(QueueId, Name)>> {
    let reached = filter.after.as_ref().map(|reached| &reached.queue);
    let from = filter.queue.as_ref().max(reached).map_or("", Name::as_str);
    let mut found: Vec<(QueueId, Name)> = connection
        .prepare_cached(include_str!("sql/list_queues.sql"))?
        .query_map([from], |row| Ok((row.get(0)?, read_name("queue", row.get_ref(1)?.as_str()?)?)))?
        .collect::<rusqlite::Result<_>>()?;
    found.retain(|(_, name)| filter.queue.as_ref().is_none_or(|queue| queue == name));
    Ok(found)
}

/// A page that is being filled.
struct List<'a> {
    connection: &'a Connection,
    queue: QueueId,
    filter: &'a Filter,
    looked_at: usize,
    page: Page,
}

impl List<'_> {
    /// Goes through the jobs of a state that stand in order of a moment. Answers where it stopped, if not at the end.
    fn by_moment(&mut self, state: u8, last: Option<&Listed>) -> rusqlite::Result<Option<Listed>> {
        let is_ended = state >= state::SUCCEEDED;
        let first = if is_ended {
            Listed::at(Timestamp::from_millis(i64::MAX), JobId::from_bytes([0xff; 16]))
        } else {
            Listed::at(Timestamp::from_millis(i64::MIN), JobId::from_bytes([0; 16]))
        };
        let Listed { moment, id, .. } = last.unwrap_or(&first);
        let (moment, id, left) = (moment.as_millis(), id.as_bytes().as_slice(), self.left());
        let mut statement = self.connection.prepare_cached(match state {
            state::SCHEDULED => include_str!("sql/list_scheduled.sql"),
            state::RUNNING => include_str!("sql/list_running.sql"),
            _ => include_str!("sql/list_ended.sql"),
        })?;
        let mut rows = match is_ended {
            true => statement.query(params![self.queue, moment, id, left, state])?,
            false => statement.query(params![self.queue, moment, id, left])?,
        };
        while let Some(row) = rows.next()? {
            let (id, moment) = (JobId::from_bytes(read_id(row, 0)?), Timestamp::from_millis(row.get(1)?));
            let task = row.get_ref(2)?.as_str()?;
            if self.look_at(id, self.filter.task.as_deref().is_none_or(|wanted| wanted == task))? {
                return Ok(Some(Listed::at(moment, id)));
            }
        }
        Ok(None)
    }

    /// Goes through the lanes, and the ready jobs of each as they will start.
    fn ready(&mut self, last: Option<&Listed>) -> rusqlite::Result<Option<Listed>> {
        let wanted = self.filter.task.as_deref();
        let (task, partition) = match last {
            Some(last) => (last.task.as_str(), last.partition.as_str()),
            None => (wanted.unwrap_or_default(), ""),
        };
        let mut statement = self.connection.prepare_cached(include_str!("sql/list_lanes.sql"))?;
        let mut rows = statement.query(params![self.queue, task, partition, self.left()])?;
        while let Some(row) = rows.next()? {
            let (lane, ready): (LaneId, i64) = (row.get(0)?, row.get(3)?);
            let (task, partition): (String, String) = (row.get(1)?, row.get(2)?);
            if wanted.is_some_and(|wanted| wanted != task) {
                return Ok(None);
            }
            let last = last.filter(|last| last.task == task && last.partition == partition);
            if ready > 0
                && let Some((priority, moment, id)) = self.lane(lane, last)?
            {
                return Ok(Some(Listed { task, partition, priority, moment, id }));
            }
            // A lane of which nothing is ready costs a look, too.
            self.looked_at += 1;
            if self.looked_at >= MOST_LOOKED_AT {
                return Ok(Some(Listed::behind(task, partition)));
            }
        }
        Ok(None)
    }

    fn lane(
        &mut self,
        lane: LaneId,
        last: Option<&Listed>,
    ) -> rusqlite::Result<Option<(i8, Timestamp, JobId)>> {
        let (rank, moment, id) = match last {
            Some(last) => (-i32::from(last.priority), last.moment.as_millis(), last.id),
            None => (i32::MIN, i64::MIN, JobId::from_bytes([0; 16])),
        };
        let mut statement = self.connection.prepare_cached(include_str!("sql/list_ready.sql"))?;
        let mut rows = statement.query(params![lane, rank, moment, id.as_bytes().as_slice(), self.left()])?;
        while let Some(row) = rows.next()? {
            let id = JobId::from_bytes(read_id(row, 0)?);
            let (rank, moment): (i32, i64) = (row.get(1)?, row.get(2)?);
            if self.look_at(id, true)? {
                let priority = i8::try_from(-rank).unwrap_or(0);
                return Ok(Some((priority, Timestamp::from_millis(moment), id)));
            }
        }
        Ok(None)
    }

    /// Takes a job in if it is wanted. Answers whether the page ends with it.
    fn look_at(&mut self, id: JobId, is_wanted: bool) -> rusqlite::Result<bool> {
        self.looked_at += 1;
        if is_wanted {
            self.page.jobs.extend(read::job(self.connection, id)?);
        }
        Ok(self.page.jobs.len() >= self.filter.most() || self.looked_at >= MOST_LOOKED_AT)
    }

    /// How many jobs the page may still look at.
    fn left(&self) -> i64 {
        MOST_LOOKED_AT.saturating_sub(self.looked_at) as i64
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Result;

    use crate::store::sqlite::open::open_writer;
    use crate::store::sqlite::options::{Location, SqliteOptions};

    #[test]
    fn a_page_begins_where_it_is_told_to_by_an_index_and_sorts_nothing() {
        let connection = open_writer(&SqliteOptions::new(Location::Memory), "the store").expect("it opens");
        for (sql, index) in [
            (include_str!("sql/list_queues.sql"), "(name>?)"),
            (include_str!("sql/list_scheduled.sql"), "flexiq_jobs_scheduled (queue=? AND (due_at,id)>(?,?))"),
            (include_str!("sql/list_running.sql"), "flexiq_jobs_leased (queue=? AND (until,id)>(?,?))"),
            (
                include_str!("sql/list_ended.sql"),
                "flexiq_jobs_ended (queue=? AND state=? AND (until,id)<(?,?))",
            ),
            (include_str!("sql/list_lanes.sql"), "(queue=? AND (task,partition)>(?,?))"),
            (include_str!("sql/list_ready.sql"), "flexiq_jobs_ready (lane=? AND (rank,due_at,id)>(?,?,?))"),
        ] {
            let mut statement =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it can be planned");
            let plan: Vec<String> = statement
                .raw_query()
                .mapped(|row| row.get(3))
                .collect::<Result<_>>()
                .expect("a plan is text");
            assert!(plan[0].contains(index), "{plan:?}");
            assert!(plan.iter().all(|step| !step.contains("B-TREE")), "{plan:?}");
        }
    }
}
