//! A world that tasks share, and the points at which one task gives way to another.
//!
//! A task changes the world between two of its steps without being disturbed.

use std::cell::{RefCell, RefMut};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// What a task does to its world when it cannot go on.
pub(super) trait Blocks {
    /// The task that is running waits: nothing changes for it before another has made a step.
    fn block(&mut self);
}

/// The world, as tasks share it.
pub(super) struct Shared<W>(Rc<RefCell<W>>);

impl<W> Clone for Shared<W> {
    fn clone(&self) -> Shared<W> {
        Shared(Rc::clone(&self.0))
    }
}

impl<W> Shared<W> {
    pub(super) fn new(world: W) -> Shared<W> {
        Shared(Rc::new(RefCell::new(world)))
    }

    pub(super) fn world(&self) -> RefMut<'_, W> {
        self.0.borrow_mut()
    }

    /// Others may come in between.
    pub(super) fn step(&self) -> Step {
        Step(false)
    }

    /// Waits until `is_so`, which may take what it waited for.
    pub(super) fn until<F: FnMut(&mut W) -> bool + Unpin>(&self, is_so: F) -> Until<'_, W, F> {
        Until { shared: self, is_so, has_yielded: false }
    }
}

pub(super) struct Step(bool);

impl Future for Step {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

pub(super) struct Until<'s, W, F> {
    shared: &'s Shared<W>,
    is_so: F,
    has_yielded: bool,
}

impl<W: Blocks, F: FnMut(&mut W) -> bool + Unpin> Future for Until<'_, W, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.has_yielded, true) {
            return Poll::Pending;
        }
        let shared = self.shared;
        let mut world = shared.world();
        if (self.is_so)(&mut world) {
            return Poll::Ready(());
        }
        world.block();
        Poll::Pending
    }
}
