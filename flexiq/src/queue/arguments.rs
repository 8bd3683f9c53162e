//! The arguments of a stored job, for people: what its task has marked as secret is not shown.

use serde_json::{Map, Value};

use super::declared::declared;
use super::{Answer, Queue};
use crate::error::{Error, Result};
use crate::job::JobId;
use crate::store::Store;
use crate::task::{Declaration, Registry};

/// What is shown instead of a secret.
const MASK: &str = "•••";

impl Queue {
    /// The arguments of a job, keyed by parameter. Those of `#[secret]` parameters are `•••`, and so is what no parameter
    /// of the task names any more: it may have been a secret of an older version.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if there is none of this id; [`Error::Unknown`] if its task is neither linked here nor declared
    /// by a worker, because then nobody knows what is secret.
    pub fn arguments(&self, id: impl Into<JobId>) -> Answer<Map<String, Value>> {
        let (store, id) = (self.store().clone(), id.into());
        Answer::new(async move {
            let job = store.job(id).await?.ok_or(Error::UnknownJob(id))?;
            let declaration = match Registry::find(&job.task)? {
                Some(definition) => Declaration::from(definition),
                None => declared(&*store, &job.task).await?,
            };
            let mut arguments = stored(&*store, id).await?;
            for (name, value) in &mut arguments {
                let parameter = declaration.parameters.iter().find(|parameter| parameter.name == *name);
                if parameter.is_none_or(|parameter| parameter.secret) {
                    *value = MASK.into();
                }
            }
            Ok(arguments)
        })
    }

    /// The arguments of a job as they are stored, secrets and all.
    #[cfg(feature = "cli")]
    pub(crate) fn arguments_unmasked(&self, id: JobId) -> Answer<Map<String, Value>> {
        let store = self.store().clone();
        Answer::new(async move { stored(&*store, id).await })
    }
}

async fn stored(store: &dyn Store, id: JobId) -> Result<Map<String, Value>> {
    let payload = store.payload(id).await?.ok_or(Error::UnknownJob(id))?;
    // The decoder's own message may hold a part of the payload.
    serde_json::from_slice(&payload.bytes).map_err(|_| Error::Decode {
        what: format!("the arguments of job {id}"),
        reason: "they are no JSON object".into(),
    })
}
