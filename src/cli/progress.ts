import { formatBytes, formatSeconds } from './format.ts';
import type { TextSink } from './io.ts';
import { escapeLine } from './safe-text.ts';
import { cutToWidth } from './terminal/text-width.ts';

export interface ProgressStep {
  /** A new label restarts the measurement. */
  readonly label: string;
  readonly doneBytes: number;
  /** null if unknown. */
  readonly totalBytes: number | null;
}

/** A progress bar on a terminal, an occasional line elsewhere. */
export interface Progress {
  update(step: ProgressStep): void;
  /** Clears the bar. */
  finish(): void;
}

const REDRAW_MS = 100;
/** An average from the start would hide a stalled connection. */
const RATE_WINDOW_MS = 10_000;
/** Interval of lines in log files. */
const LINE_MS = 5000;
const BAR_WIDTH = 24;
const GAP = '  ';
/** A shorter label is useless. */
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
      // One column stays free: a full line would wrap, and \r would return to the wrong line.
      sink.write(sink.isTerminal ? `\r\x1b[K${fit(parts, sink.columns - 1)}` : `${parts.join(GAP)}\n`);
    },
    finish() {
      if (isBarShown) sink.write('\r\x1b[K');
      isBarShown = false;
      label = '';
    },
  };
}

/** Shortens the label first, because the numbers matter more. */
function fit([label, ...parts]: readonly string[], width: number): string {
  const numbers = parts.map((part) => GAP + part).join('');
  const labelWidth = Math.max(MIN_LABEL, width - numbers.length);
  return cutToWidth(cutToWidth(label!, labelWidth) + numbers, width);
}

interface Sample {
  readonly ms: number;
  readonly bytes: number;
}

/** Adds at most one sample per redraw; the first sample starts the rate window. */
function addSample(samples: readonly Sample[], sample: Sample): Sample[] {
  const isDue = samples.length === 0 || sample.ms - samples.at(-1)!.ms >= REDRAW_MS;
  const from = samples.findLastIndex(({ ms }) => ms <= sample.ms - RATE_WINDOW_MS);
  const recent = samples.slice(Math.max(0, from));
  return isDue ? [...recent, sample] : recent;
}

function describe({ label, doneBytes, totalBytes }: ProgressStep, start: Sample, ms: number) {
  const seconds = (ms - start.ms) / 1000;
  // Bytes of a resumed download do not count towards the speed.
  const rate = seconds > 0 ? (doneBytes - start.bytes) / seconds : 0;
  const parts = [escapeLine(label)];
  if (totalBytes !== null && totalBytes > 0) {
    const fraction = Math.min(1, doneBytes / totalBytes);
    const numFilled = Math.round(fraction * BAR_WIDTH);
    parts.push(`${'█'.repeat(numFilled)}${'░'.repeat(BAR_WIDTH - numFilled)} ${Math.floor(fraction * 100)}%`);
    parts.push(`${formatBytes(doneBytes)} / ${formatBytes(totalBytes)}`);
  } else if (doneBytes > 0) {
    parts.push(formatBytes(doneBytes));
  }
  if (rate > 0) parts.push(`${formatBytes(rate)}/s`);
  if (rate > 0 && totalBytes !== null) parts.push(`${formatSeconds((totalBytes - doneBytes) / rate)} left`);
  return parts;
}
