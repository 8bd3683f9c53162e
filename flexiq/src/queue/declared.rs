//! What workers have declared of a task that this program does not link.

#[cfg(feature = "cli")]
use super::{Answer, Queue};
use crate::error::{Error, Result};
use crate::policy;
use crate::store::Store;
use crate::task::{Declaration, Registry};

/// The declaration of a task, as the newest worker that linked it gave it.
pub(super) async fn declared(store: &dyn Store, task: &str) -> Result<Declaration> {
    let known = store.declarations().await?;
    let Some((_, json)) = known.iter().find(|(name, _)| name.as_str() == task) else {
        let mut names: Vec<&str> = Registry::names().collect();
        names.extend(known.iter().map(|(name, _)| name.as_str()));
        let nearest = policy::nearest(task, names).map(str::to_owned);
        return Err(Error::Unknown { what: "task", name: task.into(), nearest });
    };
    read(task, json)
}

#[cfg(feature = "cli")]
impl Queue {
    /// What workers have declared of each task.
    pub(crate) fn declarations(&self) -> Answer<Vec<Declaration>> {
        let store = self.store().clone();
        Answer::new(async move {
            let known = store.declarations().await?;
            known.iter().map(|(task, json)| read(task, json)).collect()
        })
    }
}

fn read(task: &str, json: &str) -> Result<Declaration> {
    serde_json::from_str(json).map_err(|error| Error::Decode {
        what: format!("the declaration of task {task}"),
        reason: error.to_string(),
    })
}
