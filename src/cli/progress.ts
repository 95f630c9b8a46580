import { formatBytes, formatSeconds } from './format.ts';
import type { TextSink } from './io.ts';
import { escapeLine } from './safe-text.ts';
import { cutToWidth } from './terminal/text-width.ts';

export interface ProgressStep {
  /** What is being done to what; a new label starts the clock again. */
  readonly label: string;
  readonly doneBytes: number;
  /** null while it is not known. */
  readonly totalBytes: number | null;
}

/** How far something has come, for people: a bar on a terminal, a line now and then elsewhere. */
export interface Progress {
  update(step: ProgressStep): void;
  /** Takes the bar away. */
  finish(): void;
}

/** Fast enough to look alive, slow enough not to cost anything. */
const REDRAW_MS = 100;
/** The speed is that of the last seconds: an average from the beginning would go on promising what a stalled line once gave. */
const RATE_WINDOW_MS = 10_000;
/** Log files should tell that something goes on, not how the bar looked. */
const LINE_MS = 5000;
const BAR_WIDTH = 24;
const GAP = '  ';
/** A label shorter than this says nothing any more. */
const MIN_LABEL = 12;

export function createProgress({ sink, now }: { sink: TextSink | null; now: () => number }): Progress {
  if (sink === null) return { update() {}, finish() {} };
  let label = '';
  let samples: Sample[] = [];
  let shownMs = 0;
  let isBarShown = false;
  return {
    update(step) {
      const ms = now();
      const isNew = step.label !== label;
      if (isNew) {
        label = step.label;
        samples = [];
        shownMs = ms;
      }
      samples = addSample(samples, { ms, bytes: step.doneBytes });
      const isDue = ms - shownMs >= (sink.isTerminal ? REDRAW_MS : LINE_MS);
      if (!isDue && !(isNew && sink.isTerminal)) return;
      shownMs = ms;
      const parts = describe(step, samples[0]!, ms);
      isBarShown ||= sink.isTerminal;
      // One column is left free: a full line would wrap, and \r would not come back to its beginning.
      sink.write(sink.isTerminal ? `\r\x1b[K${fit(parts, sink.columns - 1)}` : `${parts.join(GAP)}\n`);
    },
    finish() {
      if (isBarShown) sink.write('\r\x1b[K');
      isBarShown = false;
      label = '';
    },
  };
}

/** The label gives way first: the numbers are what one looks for. */
function fit([label, ...rest]: readonly string[], width: number): string {
  const numbers = rest.map((part) => GAP + part).join('');
  const room = Math.max(MIN_LABEL, width - numbers.length);
  return cutToWidth(cutToWidth(label!, room) + numbers, width);
}

interface Sample {
  readonly ms: number;
  readonly bytes: number;
}

/** A sample for each drawing of the bar at most; the first one is the beginning of the window. */
function addSample(samples: readonly Sample[], sample: Sample): Sample[] {
  const isDue = samples.length === 0 || sample.ms - samples.at(-1)!.ms >= REDRAW_MS;
  const from = samples.findLastIndex(({ ms }) => ms <= sample.ms - RATE_WINDOW_MS);
  const kept = samples.slice(Math.max(0, from));
  return isDue ? [...kept, sample] : kept;
}

function describe({ label, doneBytes, totalBytes }: ProgressStep, start: Sample, ms: number) {
  const seconds = (ms - start.ms) / 1000;
  // Bytes that were there before (a resumed download) say nothing about the speed.
  const rate = seconds > 0 ? (doneBytes - start.bytes) / seconds : 0;
  const parts = [escapeLine(label)];
  if (totalBytes !== null && totalBytes > 0) {
    const share = Math.min(1, doneBytes / totalBytes);
    const filled = Math.round(share * BAR_WIDTH);
    parts.push(`${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${Math.floor(share * 100)}%`);
    parts.push(`${formatBytes(doneBytes)} / ${formatBytes(totalBytes)}`);
  } else if (doneBytes > 0) {
    parts.push(formatBytes(doneBytes));
  }
  if (rate > 0) parts.push(`${formatBytes(rate)}/s`);
  if (rate > 0 && totalBytes !== null) parts.push(`${formatSeconds((totalBytes - doneBytes) / rate)} left`);
  return parts;
}
