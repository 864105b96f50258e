//! What a camera's mounting does to its images.
use models::data::{Elements, Inputs, Samples};
use std::fmt;
use std::str::FromStr;

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

    /// Square grey images as this camera sees them: an exact permutation of the pixels.
    ///
    /// # Panics
    /// If they are not square, not grey or not bytes.
    #[must_use]
    pub fn turn(self, samples: &Samples) -> Samples {
        let (Elements::U8(pixels), [1, height, width]) =
            (samples.inputs().elements(), samples.inputs().input())
        else {
            panic!("cameras here give grey bytes")
        };
        assert_eq!(height, width, "a quarter turn keeps the size of square images only");
        let turned =
            pixels.chunks_exact(width * width).flat_map(|image| self.permute(image, width)).collect();
        let inputs = Inputs::new([1, height, width], Elements::U8(turned));
        inputs
            .and_then(|i| Samples::new(i, samples.labels().to_vec()))
            .expect("a permutation keeps every size")
    }

    /// One quarter turn: `out[y][x] = in[x][n−1−y]`.
    fn permute(self, image: &[u8], n: usize) -> Vec<u8> {
        let from = |y: usize, x: usize| match self {
            Self::Upright => y * n + x,
            Self::Quarter => x * n + (n - 1 - y),
            Self::Half => (n - 1 - y) * n + (n - 1 - x),
            Self::ThreeQuarters => (n - 1 - x) * n + y,
        };
        (0..n * n).map(|i| image[from(i / n, i % n)]).collect()
    }
}

impl FromStr for Angle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|a| a.degrees().to_string() == text);
        known.ok_or_else(|| format!("{text:?} is not a mounting: choose among 0, 90, 180 and 270"))
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

    fn images(n: usize, pixels: Vec<u8>) -> Samples {
        let inputs = Inputs::new([1, n, n], Elements::U8(pixels)).unwrap();
        let labels = (0..inputs.len() as u16).collect();
        Samples::new(inputs, labels).unwrap()
    }

    #[test]
    fn a_quarter_turn_moves_the_right_column_to_the_top() {
        assert_eq!(Angle::Quarter.turn(&images(2, vec![1, 2, 3, 4])), images(2, vec![2, 4, 1, 3]));
    }

    #[test]
    fn turns_compose_and_lose_nothing() {
        let upright = images(5, (0..50).collect());
        let by = |times: usize| (0..times).fold(upright.clone(), |turned, _| Angle::Quarter.turn(&turned));
        for (times, angle) in Angle::ALL.into_iter().enumerate() {
            assert_eq!(angle.turn(&upright), by(times), "{angle}");
        }
        assert_eq!(by(4), upright);
    }
}
