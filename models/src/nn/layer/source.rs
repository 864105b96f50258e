//! Nodes that read nothing: the sample and the conditioning vector.
use super::{Lane, Layer, Pass, Slot};

/// The standardised sample, turned channel-last.
#[derive(Debug)]
pub(in crate::nn) struct Input {
    pub output: Slot,
}

impl Layer for Input {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let values = &mut lane.values[self.output.node];
        for s in pass.run.clone() {
            pass.source.load(pass.picks[s], &self.output.plane, &mut values[self.output.value(pass, s)]);
        }
    }

    fn backward(&self, _: &Pass<'_>, _: &mut Lane) {}
}

/// The conditioning vector, copied to every sample.
#[derive(Debug)]
pub(in crate::nn) struct Conditioning {
    pub output: Slot,
}

impl Layer for Conditioning {
    fn forward(&self, pass: &Pass<'_>, lane: &mut Lane) {
        let values = &mut lane.values[self.output.node];
        for s in pass.run.clone() {
            values[self.output.value(pass, s)].copy_from_slice(pass.conditioning);
        }
    }

    fn backward(&self, _: &Pass<'_>, _: &mut Lane) {}
}
