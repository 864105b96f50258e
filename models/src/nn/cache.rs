//! Features that are computed once: a frozen backbone's answer to a sample does not change, and training a head needs nothing else.
use super::{Extractor, Features, TrainError};
use crate::id::Hash;
use crate::nn::Dataset;
use crate::params::Backbone;
use half::f16;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// How cached features are held.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Precision {
    /// As they are: training on cached features gives the same bits as on fresh ones.
    #[default]
    F32,
    /// Rounded to half precision: half the memory, up to one part in two thousand off.
    F16,
}

/// Features by backbone and sample, in bounded memory.
///
/// A backbone is known by the hash of its values and of the conditioning vector, a sample by the hash of its numbers: the same picture twice is held once.
/// Where room is short, the backbone that was not asked for the longest goes first; what does not fit at all is computed each time.
#[derive(Clone, Debug)]
pub struct FeatureCache {
    precision: Precision,
    most: usize,
    shelves: Vec<Shelf>,
}

/// The features of one backbone.
#[derive(Clone, Debug)]
struct Shelf {
    backbone: Hash,
    width: usize,
    places: BTreeMap<Hash, usize>,
    rows: Rows,
}

#[derive(Clone, Debug)]
enum Rows {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl Rows {
    fn push(&mut self, row: &[f32]) {
        match self {
            Self::F32(rows) => rows.extend_from_slice(row),
            Self::F16(rows) => rows.extend(row.iter().map(|&x| f16::from_f32(x))),
        }
    }

    fn read(&self, at: usize, out: &mut [f32]) {
        let place = at * out.len()..(at + 1) * out.len();
        match self {
            Self::F32(rows) => out.copy_from_slice(&rows[place]),
            Self::F16(rows) => out.iter_mut().zip(&rows[place]).for_each(|(o, x)| *o = x.to_f32()),
        }
    }
}

impl FeatureCache {
    /// A cache of at most `most` bytes.
    pub fn new(precision: Precision, most: usize) -> Self {
        Self { precision, most, shelves: vec![] }
    }

    /// Bytes that it holds now, those of its keys included.
    pub fn bytes(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.places.len() * self.row_bytes(shelf.width)).sum()
    }

    /// Bytes of a feature and its key.
    fn row_bytes(&self, width: usize) -> usize {
        let number = match self.precision {
            Precision::F32 => 4,
            Precision::F16 => 2,
        };
        number * width + size_of::<(Hash, usize)>()
    }

    /// The features of some samples, of which `hashes` are the names of all the data set's.
    ///
    /// # Errors
    /// As [`Extractor::of_samples`].
    pub fn features(
        &mut self,
        extractor: &Extractor,
        backbone: &Backbone,
        conditioning: &[f32],
        (data, hashes): (&Dataset, &[Hash]),
        samples: &[usize],
    ) -> Result<Features, TrainError> {
        let (name, width) = (name(backbone, conditioning), backbone.spec().features());
        let at = self.shelf(name, width);
        let places = &self.shelves[at].places;
        let missing: Vec<usize> =
            samples.iter().copied().filter(|&i| !places.contains_key(&hashes[i])).collect();
        if self.make_room(missing.len(), width) {
            let fresh = extractor.of_samples(backbone, conditioning, data, &missing)?;
            let shelf = self.shelves.last_mut().expect("a shelf was put up last");
            for (row, &i) in missing.iter().enumerate() {
                let next = shelf.places.len();
                if let std::collections::btree_map::Entry::Vacant(free) = shelf.places.entry(hashes[i]) {
                    free.insert(next);
                    shelf.rows.push(fresh.row(row));
                }
            }
        } else {
            return extractor.of_samples(backbone, conditioning, data, samples);
        }
        let shelf = self.shelves.last().expect("a shelf was put up last");
        let mut values = vec![0.0; samples.len() * width];
        for (out, &i) in values.chunks_exact_mut(width.max(1)).zip(samples) {
            shelf.rows.read(shelf.places[&hashes[i]], out);
        }
        let labels = samples.iter().map(|&i| data.labels()[i]).collect();
        Ok(Features { width, values, labels })
    }

    /// The place of a backbone's shelf, which is put up last: the most recent one.
    fn shelf(&mut self, backbone: Hash, width: usize) -> usize {
        let known = self.shelves.iter().position(|shelf| shelf.backbone == backbone);
        let shelf = known.map(|at| self.shelves.remove(at)).unwrap_or_else(|| Shelf {
            backbone,
            width,
            places: BTreeMap::new(),
            rows: match self.precision {
                Precision::F32 => Rows::F32(vec![]),
                Precision::F16 => Rows::F16(vec![]),
            },
        });
        self.shelves.push(shelf);
        self.shelves.len() - 1
    }

    /// Makes room for so many rows on the last shelf; false if there can't be enough.
    fn make_room(&mut self, rows: usize, width: usize) -> bool {
        let needed = rows * self.row_bytes(width);
        while self.shelves.len() > 1 && self.bytes() + needed > self.most {
            self.shelves.remove(0);
        }
        self.bytes() + needed <= self.most
    }
}

/// What a backbone's answers depend on.
fn name(backbone: &Backbone, conditioning: &[f32]) -> Hash {
    let mut hash = Sha256::new();
    hash.update(backbone.spec().hash().0);
    for values in [backbone.values(), conditioning] {
        hash.update((values.len() as u64).to_le_bytes());
        for some in values.chunks(256) {
            let mut bytes = [0; 4 * 256];
            bytes.chunks_exact_mut(4).zip(some).for_each(|(to, x)| to.copy_from_slice(&x.to_le_bytes()));
            hash.update(&bytes[..4 * some.len()]);
        }
    }
    Hash(hash.finalize().into())
}
