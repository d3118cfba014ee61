//! MD5 of many short texts at once.
//!
//! Each step of MD5 depends on the previous one, so hashing one text alone leaves a
//! processor mostly idle. Here eight texts are hashed side by side, one in each lane of
//! small arrays, and the compiler turns the loops over the lanes into vector instructions.
//! A lane whose text is done takes the next one.
//!
//! The `md-5` crate, against which the tests compare, hashes one text at a time: over 100 ns
//! for each block of 64 bytes. Most lines are one block, 35 bytes on average, so rendering
//! would slow down from 600 to about 250 MB/s, and from nine to four times the speed of the
//! peer in the benchmark, where five are required.
//!
//! The digest only identifies lines; nothing here depends on MD5 being hard to forge.

use std::array;

/// Number of texts that are hashed side by side.
const LANES: usize = 8;

/// Block size of MD5 in bytes.
const BLOCK: usize = 64;

/// One word of each text.
type Lanes = [u32; LANES];

const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The constants of each step, by round.
#[rustfmt::skip]
const SINES: [[u32; 16]; 4] = [
    [
        0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee,
        0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
        0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be,
        0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    ],
    [
        0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa,
        0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
        0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed,
        0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    ],
    [
        0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c,
        0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
        0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05,
        0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    ],
    [
        0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039,
        0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
        0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1,
        0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
    ],
];

/// Writes the first two bytes of each text's MD5, the first one in the upper half.
pub(crate) fn first_bytes<'a>(
    texts: impl Iterator<Item = &'a str>,
    out: impl IntoIterator<Item = &'a mut u16>,
) {
    let mut waiting = texts.zip(out).map(|(text, out)| Job::new(text, out));
    let mut jobs: [Option<Job<'_>>; LANES] = array::from_fn(|_| waiting.next());
    let mut state = START.map(|word| [word; LANES]);
    let mut words = [[0; LANES]; 16];
    while jobs.iter().any(Option::is_some) {
        for (lane, job) in jobs.iter_mut().enumerate() {
            let Some(job) = job else { continue };
            let block = job.next_block();
            for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
                word[lane] = u32::from_le_bytes(*bytes);
            }
        }
        compress(&mut state, &words);
        for (lane, job) in jobs.iter_mut().enumerate() {
            if let Some(done) = job.take_if(|job| job.is_done) {
                let [first, second, ..] = state[0][lane].to_le_bytes();
                *done.out = u16::from_be_bytes([first, second]);
                for (word, start) in state.iter_mut().zip(START) {
                    word[lane] = start;
                }
                *job = waiting.next();
            }
        }
    }
}

struct Job<'a> {
    rest: &'a [u8],
    bits: u64,
    /// Whether the end mark of the text has been written.
    is_marked: bool,
    is_done: bool,
    out: &'a mut u16,
}

impl<'a> Job<'a> {
    fn new(text: &'a str, out: &'a mut u16) -> Self {
        Self {
            rest: text.as_bytes(),
            bits: (text.len() as u64).wrapping_mul(8),
            is_marked: false,
            is_done: false,
            out,
        }
    }

    /// Returns the next block of the text, with MD5's padding at the end.
    fn next_block(&mut self) -> [u8; BLOCK] {
        if let Some((block, rest)) = self.rest.split_first_chunk() {
            self.rest = rest;
            return *block;
        }
        let mut block = [0; BLOCK];
        let length = self.rest.len();
        for (to, from) in block.iter_mut().zip(self.rest) {
            *to = *from;
        }
        self.rest = &[];
        if !self.is_marked
            && let Some(mark) = block.get_mut(length)
        {
            *mark = 0x80;
            self.is_marked = true;
        }
        if length < BLOCK - size_of::<u64>()
            && let Some(bits) = block.last_chunk_mut()
        {
            *bits = self.bits.to_le_bytes();
            self.is_done = true;
        }
        block
    }
}

fn compress(state: &mut [Lanes; 4], words: &[Lanes; 16]) {
    let mixed = round::<0>(
        *state,
        words,
        [7, 12, 17, 22],
        |step| step,
        |b, c, d| d ^ (b & (c ^ d)),
    );
    let mixed = round::<1>(
        mixed,
        words,
        [5, 9, 14, 20],
        |step| 5 * step + 1,
        |b, c, d| c ^ (d & (b ^ c)),
    );
    let mixed = round::<2>(
        mixed,
        words,
        [4, 11, 16, 23],
        |step| 3 * step + 5,
        |b, c, d| b ^ c ^ d,
    );
    let mixed = round::<3>(
        mixed,
        words,
        [6, 10, 15, 21],
        |step| 7 * step,
        |b, c, d| c ^ (b | !d),
    );
    for (word, mixed) in state.iter_mut().zip(mixed) {
        for (lane, mixed) in word.iter_mut().zip(mixed) {
            *lane = lane.wrapping_add(mixed);
        }
    }
}

/// Performs sixteen steps. `order` selects the word for each step, `mix` combines three
/// words of the state.
#[inline(always)]
fn round<const ROUND: usize>(
    [mut a, mut b, mut c, mut d]: [Lanes; 4],
    words: &[Lanes; 16],
    shifts: [u32; 4],
    order: impl Fn(usize) -> usize,
    mix: impl Fn(u32, u32, u32) -> u32,
) -> [Lanes; 4] {
    for (step, sine) in SINES[ROUND].iter().enumerate() {
        let word = &words[order(step) % 16];
        let shift = shifts[step % 4];
        let mut next = [0; LANES];
        for lane in 0..LANES {
            let sum = a[lane]
                .wrapping_add(mix(b[lane], c[lane], d[lane]))
                .wrapping_add(word[lane].wrapping_add(*sine));
            // A rotation, with the sum of its halves and `b` written out. If it is written
            // as a rotation, the compiler handles the lanes one by one.
            next[lane] = (sum << shift)
                .wrapping_add(b[lane])
                .wrapping_add(sum >> (32 - shift));
        }
        (a, b, c, d) = (d, next, b, c);
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::first_bytes;
    use ::md5::{Digest as _, Md5};

    fn check(texts: &[String]) {
        let mut ours = vec![0; texts.len()];
        first_bytes(texts.iter().map(String::as_str), &mut ours);
        let theirs = texts.iter().map(|text| {
            let digest = Md5::digest(text.as_bytes());
            u16::from_be_bytes([digest[0], digest[1]])
        });
        assert_eq!(ours, theirs.collect::<Vec<_>>());
    }

    #[test]
    fn every_length_around_the_block_size_is_as_the_reference_says() {
        check(&[]);
        for count in [1, 7, 8, 9, 300] {
            let texts: Vec<_> = (0..count).map(|length| "é".repeat(length)).collect();
            check(&texts);
            let reversed: Vec<_> = texts.into_iter().rev().map(|text| text + "x").collect();
            check(&reversed);
        }
    }

    #[test]
    fn one_long_text_among_short_ones() {
        let mut texts = vec!["a".to_owned(); 30];
        texts.insert(3, "long ".repeat(2_000));
        check(&texts);
    }
}
