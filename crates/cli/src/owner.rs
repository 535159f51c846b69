//! Whose a store is.

use sottovoce_net::store::Owner;
use sottovoce_net::transport::Identity;
use sottovoce_run::peer::PeerTask;

/// To whom the store of a peer belongs.
pub fn owner(one: &PeerTask, identity: &Identity) -> Owner {
    Owner {
        key: identity.id().to_string(),
        task: one.task,
        data: one.data,
        algorithm: one.loaded.task.algorithm.name.to_owned(),
    }
}
