//! Backups of a peer's disk, and what a peer that comes back from one can be made to say.

use super::CrashDisk;
use super::world::{World, name};
use sottovoce_algorithms::Shard;
use sottovoce_core::{Algorithm, PeerId};
use sottovoce_net::frame::{Answer, Card, Question};
use sottovoce_net::node::Node;

/// A life in fine weather, with a backup of peer 0 at every boundary of its disk.
pub fn with_backups<'w, A: for<'d> Algorithm<Data<'d> = Shard<'d>>>(
    mut world: World<'w, A>,
    done: impl Fn(&World<'w, A>) -> bool,
) -> (World<'w, A>, Vec<Vec<u8>>) {
    world.peers[0].disk.0.borrow_mut().backups = Some(vec![Vec::new()]);
    world.run(0, 3_000, done);
    let mut backups = world.peers[0].disk.0.borrow_mut().backups.take().expect("backups were made");
    backups.push(world.peers[0].disk.0.borrow().bytes.clone());
    backups.dedup();
    (world, backups)
}

/// What a neighbour says to the restored peer 0; and the highest number it saw.
pub fn asked<A: Algorithm>(world: &mut World<'_, A>, node: &Node<'_, A, CrashDisk>, witness: PeerId) -> (Vec<u8>, u64) {
    let other = world.peers[witness.index()].node.as_mut().expect("it is up");
    let answer = other.receive(Some(PeerId(0)), &node.hello()).expect("it lives");
    let Ok(Answer::Welcome { seen, .. }) = Answer::decode(&answer) else { panic!("a welcome") };
    (answer.clone(), seen.highest())
}

/// Everything that a peer can be made to say is old: it was said before, with the same bytes.
pub fn says_nothing_new<A: Algorithm>(world: &World<'_, A>, node: &mut Node<'_, A, CrashDisk>) {
    for edge in world.problem.graph.peers(PeerId(0)).iter() {
        if let Some(out) = node.outgoing(edge.peer) {
            // What the newest store has committed and not delivered yet is what the peer itself would send.
            let waits = world.peers[0].node.as_ref().and_then(|node| node.outgoing(edge.peer));
            let known = world.seen.get(&(0, out.number)) == Some(&out.frame) || waits.as_ref() == Some(&out);
            assert!(known, "number {} is new", out.number);
        }
        let hello = Question::Hello(Card { name: &name(edge.peer.index()), points: 3, ..Card::default() }).encode();
        let Ok(answer) = node.receive(Some(edge.peer), &hello) else { continue };
        if let Ok(Answer::Welcome { post: Some(post), .. }) = Answer::decode(&answer) {
            assert_eq!(world.seen.get(&(0, post.stamp.number)), Some(&Question::Post(post).encode()));
        }
    }
}
