//! The two fixed worlds of the demo, and what may be varied about them.
mod deal;

pub use deal::{Deal, dirichlet};

use crate::bundle::{Bundle, CLASSES};
use crate::camera::Angle;
use models::data::Samples;
use models::id::ClientId;

/// Boards that join only after training.
pub const LATE: usize = 2;

/// Which world.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum WorldName {
    /// 12 boards, Dirichlet 0.3, cameras mounted at 0°, 90°, 180° and 270°.
    Mixed,
    /// 10 boards, Dirichlet 0.1, all cameras upright.
    Labels,
}

impl WorldName {
    /// Its spelling in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Labels => "labels",
        }
    }
}

/// What makes a world: everything in it is a function of this.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldPlan {
    /// Which one.
    pub name: WorldName,
    /// Boards that train; [`LATE`] more join afterwards.
    pub clients: usize,
    /// Concentration α of the Dirichlet distribution.
    pub alpha: f64,
    /// Mountings, dealt in turn to those that train and in turn to those that come late.
    pub angles: Vec<Angle>,
    /// Varies the partition (and, outside, initial weights and sampling).
    pub seed: u64,
}

impl WorldPlan {
    /// The world as it is fixed.
    pub fn fixed(name: WorldName, seed: u64) -> Self {
        match name {
            WorldName::Mixed => Self { name, clients: 12, alpha: 0.3, angles: Angle::ALL.to_vec(), seed },
            WorldName::Labels => Self { name, clients: 10, alpha: 0.1, angles: vec![Angle::Upright], seed },
        }
    }

    /// Builds it.
    pub fn build(&self, bundle: &Bundle) -> World {
        let boards = self.clients + LATE;
        let (train, test) = (bundle.clients.labels(), bundle.test.labels());
        let deal = dirichlet(train, test, CLASSES.len(), boards, self.alpha, self.seed);
        let boards = (0..boards).map(|index| self.board(index, &deal, bundle)).collect();
        World { plan: self.clone(), boards, auxiliary: bundle.auxiliary.clone(), moved: deal.moved }
    }

    fn board(&self, index: usize, deal: &Deal, bundle: &Bundle) -> Board {
        let late = index >= self.clients;
        let turn = if late { index - self.clients } else { index };
        let angle = self.angles[turn % self.angles.len()];
        let train = angle.turn(&bundle.clients.select(&deal.train[index]));
        let counts = train.counts(CLASSES.len());
        let absent = |i: &usize| counts[usize::from(bundle.test.labels()[*i])] == 0;
        Board {
            client: ClientId(index as u32),
            angle,
            late,
            train,
            test: angle.turn(&bundle.test),
            own: deal.test[index].clone(),
            unseen: (0..bundle.test.len()).filter(absent).collect(),
        }
    }
}

/// A world: boards with their data, and the host's auxiliary set.
#[derive(Clone, Debug)]
pub struct World {
    /// What it was made from.
    pub plan: WorldPlan,
    /// Those that train, then those that join late.
    pub boards: Vec<Board>,
    /// The host's own labelled images, upright.
    pub auxiliary: Samples,
    /// Training samples moved by hand because the draw left a board with fewer than two.
    pub moved: usize,
}

impl World {
    /// The boards that take part in training.
    pub fn trained(&self) -> &[Board] {
        &self.boards[..self.plan.clients]
    }

    /// The boards that join afterwards.
    pub fn late(&self) -> &[Board] {
        &self.boards[self.plan.clients..]
    }
}

/// A board's data, as its camera sees them.
#[derive(Clone, Debug)]
pub struct Board {
    /// Its number.
    pub client: ClientId,
    /// How its camera is mounted.
    pub angle: Angle,
    /// Whether it joins after training.
    pub late: bool,
    /// Its training images.
    pub train: Samples,
    /// All test images.
    pub test: Samples,
    /// Those of them that are its own: dealt in its class proportions.
    pub own: Vec<usize>,
    /// Those of a class that it has no training image of.
    pub unseen: Vec<usize>,
}

impl Board {
    /// Share of its own test images that belong to its most frequent training class (the lowest of those that tie).
    pub fn majority(&self) -> f64 {
        let counts = self.train.counts(CLASSES.len());
        let favourite = (0..counts.len()).rev().max_by_key(|&class| counts[class]).unwrap_or(0);
        let hits = self.own.iter().filter(|&&i| usize::from(self.test.labels()[i]) == favourite).count();
        hits as f64 / self.own.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worlds_are_as_fixed() {
        let bundle = Bundle::embedded();
        for (name, trained, per_angle) in
            [(WorldName::Mixed, 12, [3, 3, 3, 3]), (WorldName::Labels, 10, [10, 0, 0, 0])]
        {
            let world = WorldPlan::fixed(name, 0).build(&bundle);
            assert_eq!((world.trained().len(), world.late().len(), world.moved), (trained, 2, 0));
            let mounted = Angle::ALL.map(|angle| world.trained().iter().filter(|b| b.angle == angle).count());
            assert_eq!(mounted, per_angle);
            assert!(world.boards.iter().all(|b| b.train.len() >= 10));
            assert_eq!(world.boards.iter().map(|b| b.train.len()).sum::<usize>(), bundle.clients.len());
            assert_eq!(world.boards.iter().map(|b| b.own.len()).sum::<usize>(), bundle.test.len());
        }
        let mixed = WorldPlan::fixed(WorldName::Mixed, 0).build(&bundle);
        assert_eq!(
            mixed.late().iter().map(|b| b.angle).collect::<Vec<_>>(),
            [Angle::Upright, Angle::Quarter]
        );
    }

    #[test]
    fn unseen_classes_are_those_without_a_training_image() {
        let world = WorldPlan::fixed(WorldName::Labels, 1).build(&Bundle::embedded());
        let mut missing = 0;
        for board in &world.boards {
            let (train, unseen) = (board.train.counts(10), board.test.select(&board.unseen).counts(10));
            assert!(train.iter().zip(&unseen).all(|(&seen, &held_out)| (seen == 0) == (held_out > 0)));
            missing += board.unseen.len();
        }
        assert!(missing > 0);
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let bundle = Bundle::embedded();
        let sizes = |seed| {
            WorldPlan::fixed(WorldName::Mixed, seed)
                .build(&bundle)
                .boards
                .iter()
                .map(|b| b.train.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(4), sizes(4));
        assert_ne!(sizes(4), sizes(5));
    }
}
