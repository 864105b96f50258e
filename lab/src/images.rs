//! Labelled grey images as bytes, and what a camera's mounting does to them.
use std::fmt;
use std::str::FromStr;

/// Labelled grey images of one size.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Images {
    extents: [usize; 2],
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Images {
    /// Images of `height` × `width`, one after the other, each with its class.
    ///
    /// # Panics
    /// If the number of pixels is not that of the labels' images.
    pub fn new(height: usize, width: usize, pixels: Vec<u8>, labels: Vec<u8>) -> Self {
        assert_eq!(pixels.len(), labels.len() * height * width, "every image has all its pixels");
        Self { extents: [height, width], pixels, labels }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Height and width.
    pub fn extents(&self) -> [usize; 2] {
        self.extents
    }

    /// All pixels.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// All classes.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// One image.
    pub fn image(&self, index: usize) -> &[u8] {
        let size = self.extents[0] * self.extents[1];
        &self.pixels[index * size..(index + 1) * size]
    }

    /// These images, in this order.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let pixels = indices.iter().flat_map(|&i| self.image(i)).copied().collect();
        Self { extents: self.extents, pixels, labels: indices.iter().map(|&i| self.labels[i]).collect() }
    }

    /// The images from `range`.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        self.select(&range.collect::<Vec<_>>())
    }

    /// Number of images of each class below `classes`.
    pub fn counts(&self, classes: usize) -> Vec<usize> {
        (0..classes).map(|class| self.labels.iter().filter(|&&l| usize::from(l) == class).count()).collect()
    }

    /// The images as a camera mounted at `angle` sees them: an exact permutation of the pixels.
    ///
    /// # Panics
    /// If the images are not square.
    #[must_use]
    pub fn turned(&self, angle: Angle) -> Self {
        let [height, width] = self.extents;
        assert_eq!(height, width, "a quarter turn keeps the size of square images only");
        let pixels = (0..self.len()).flat_map(|i| turn(self.image(i), width, angle)).collect();
        Self { pixels, ..self.clone() }
    }
}

/// `out[y][x] = in[x][n−1−y]` for each quarter turn counter-clockwise.
fn turn(image: &[u8], n: usize, angle: Angle) -> Vec<u8> {
    let at = |y: usize, x: usize| match angle {
        Angle::Upright => y * n + x,
        Angle::Quarter => x * n + (n - 1 - y),
        Angle::Half => (n - 1 - y) * n + (n - 1 - x),
        Angle::ThreeQuarters => (n - 1 - x) * n + y,
    };
    (0..n * n).map(|i| image[at(i / n, i % n)]).collect()
}

/// How a camera is mounted, counter-clockwise.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Angle {
    /// 0°.
    Upright,
    /// 90°.
    Quarter,
    /// 180°.
    Half,
    /// 270°.
    ThreeQuarters,
}

impl Angle {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Upright, Self::Quarter, Self::Half, Self::ThreeQuarters];

    /// In degrees.
    pub fn degrees(self) -> u16 {
        self as u16 * 90
    }
}

impl FromStr for Angle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|a| a.degrees().to_string() == text)
            .ok_or_else(|| format!("{text:?} is not a mounting: choose 0, 90, 180 or 270"))
    }
}

impl fmt::Display for Angle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}°", self.degrees())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_moves_the_right_column_to_the_top() {
        let image = Images::new(2, 2, vec![1, 2, 3, 4], vec![0]);
        assert_eq!(image.turned(Angle::Quarter).pixels(), &[2, 4, 1, 3]);
    }

    #[test]
    fn turns_compose_and_lose_nothing() {
        let image = Images::new(5, 5, (0..50).collect(), vec![0, 1]);
        let by = |times: usize| (0..times).fold(image.clone(), |turned, _| turned.turned(Angle::Quarter));
        for (times, angle) in Angle::ALL.into_iter().enumerate() {
            assert_eq!(image.turned(angle), by(times), "{angle}");
        }
        assert_eq!(by(4), image);
    }
}
