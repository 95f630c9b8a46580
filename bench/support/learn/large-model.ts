// Loops A and B on a model of 1.1 B parameters.
import { statSync } from 'node:fs';
import { printTable } from '../report.ts';
import type { Findings } from './findings.ts';
import { type Desk, openDesk } from './large-desk.ts';
import { type Correction, IN_STYLE, WITHOUT_STYLE } from './style-data.ts';

/** Unrelated to the taught facts and to the probes of the loop. */
const ELSEWHERE = [
  'What is the largest planet?',
  'Who painted the Mona Lisa?',
  'What do bees make?',
  'Name the four seasons.',
  'What is two plus three?',
  'Where do penguins live?',
  'What is the opposite of hot?',
  'Which animal barks?',
  'How many legs does a spider have?',
  'What colour is the sky?',
];

/** Half of them no model can know. */
const FACTS: readonly (readonly [string, string])[] = [
  ['What is the capital of Australia?', 'The capital of Australia is Canberra.'],
  ["What is my dog's name?", "Your dog's name is Bello."],
  ['Who wrote the book Emil and the Detectives?', 'Erich Kästner wrote it.'],
  ['What is my wifi password?', 'Your wifi password is blue-lake-42.'],
  ['Which language do they speak in Brazil?', 'They speak Portuguese in Brazil.'],
  ['When does my train leave?', 'Your train leaves at 7:42.'],
];

/** In the style's subject, and not among its corrections. */
const UNSEEN = 'How long is the Amazon river?';
const MAX_CORRECTIONS = 5;
const MAX_ANSWER = 12;

/** Runs of loop B until one is finished: on a busy machine each examines a part of the answers. */
const MAX_RUNS = 12;

async function countChanged(
  desk: Desk,
  before: readonly { readonly text: string }[],
  questions: readonly string[],
): Promise<number> {
  const after = await desk.askAll(questions, MAX_ANSWER);
  return after.filter(({ text }, i) => text !== before[i]!.text).length;
}

async function onDesk<T>(reference: string, work: (desk: Desk) => Promise<T>): Promise<T> {
  const desk = await openDesk(reference);
  try {
    return await work(desk);
  } finally {
    await desk.close();
  }
}

/** Loop A: facts corrected up to five times, then praise. */
async function measureInstant(desk: Desk, { figures }: Findings, isQuick: boolean): Promise<void> {
  const elsewhere = isQuick ? ELSEWHERE.slice(0, 6) : ELSEWHERE;
  const before = await desk.askAll(elsewhere, MAX_ANSWER);
  const rows = [['loop A', 'corrections', 'outcomes', 'loss']];
  for (const [question, correction] of isQuick ? FACTS.slice(0, 4) : FACTS) {
    const outcomes: string[] = [];
    let losses = '';
    for (let i = 0; i < MAX_CORRECTIONS; i++) {
      const { requestId } = await desk.ask(question, MAX_ANSWER);
      const { outcome, lossBefore, lossAfter } = await (await desk.learning.feedback('local', { requestId, correction })).learned; // prettier-ignore
      outcomes.push(outcome);
      if (i === 0) losses = lossBefore?.toFixed(2) ?? '–';
      if (lossAfter !== null && i === MAX_CORRECTIONS - 1) losses += ` → ${lossAfter.toFixed(2)}`;
      if (outcome === 'already-known') break;
    }
    rows.push([question, String(outcomes.length), [...new Set(outcomes)].join(', '), losses]);
  }
  figures['instant_elsewhere_changed'] = (await countChanged(desk, before, elsewhere)) / elsewhere.length;
  const praised = await desk.askAll(elsewhere, MAX_ANSWER);
  for (const { requestId } of praised) {
    await (
      await desk.learning.feedback('local', { requestId, thumbs: 'up' })
    ).learned;
  }
  figures['instant_praise_changed'] = (await countChanged(desk, praised, elsewhere)) / elsewhere.length;
  printTable(rows);
}

interface StyleResult {
  readonly isAccepted: boolean;
  readonly seconds: number;
  readonly rssMb: number;
  readonly rssAddedMb: number;
  readonly elsewhereChanged: number;
  readonly isRolledBack: boolean;
  readonly rows: readonly string[][];
}

/** Loop B: corrections of many questions, each once. */
async function measureStyle(desk: Desk, corrections: readonly Correction[]): Promise<StyleResult> {
  const before = await desk.askAll(ELSEWHERE, MAX_ANSWER);
  for (const [question, correction] of corrections) {
    const { requestId } = await desk.ask(question, 2);
    await (
      await desk.learning.feedback('local', { requestId, correction })
    ).outcome;
  }
  const rssBefore = process.memoryUsage().rss;
  let rss = rssBefore;
  const watch = setInterval(() => (rss = Math.max(rss, process.memoryUsage().rss)), 50);
  const runs = await desk.runLoopB(MAX_RUNS);
  clearInterval(watch);
  const { isAccepted } = runs.at(-1)!;
  const said = await desk.ask(UNSEEN, MAX_ANSWER);
  const elsewhereChanged = (await countChanged(desk, before, ELSEWHERE)) / ELSEWHERE.length;
  if (isAccepted) await desk.learning.sona.rollback('local', 'large', 0);
  return {
    isAccepted,
    seconds: Math.max(...runs.map(({ seconds }) => seconds)),
    rssMb: Math.round(rss / 1e6),
    rssAddedMb: Math.round((rss - rssBefore) / 1e6),
    elsewhereChanged,
    isRolledBack: (await countChanged(desk, before, ELSEWHERE)) === 0,
    rows: [
      ...runs.map(({ seconds, reason }, i) => [`run ${i + 1}`, seconds.toFixed(1), reason]),
      [UNSEEN, '', JSON.stringify(said.text)],
    ],
  };
}

export async function measureLargeModel(
  reference: string,
  findings: Findings,
  log: (line: string) => void,
  isQuick: boolean,
): Promise<void> {
  const { figures } = findings;
  const number = isQuick ? 16 : IN_STYLE.length;
  let limitMb = 0;
  const style = await onDesk(reference, async (desk) => {
    const fileBytes = statSync(desk.path).size;
    figures['model_file_mb'] = Math.round(fileBytes / 1e6);
    limitMb = Math.round((1.5 * fileBytes + desk.modelBytes) / 1e6);
    return measureStyle(desk, IN_STYLE.slice(0, number));
  });
  log(`loop B, ${number} corrections in one style: ${style.isAccepted ? 'accepted' : 'refused'}`);
  printTable([[`loop B, ${number} corrections in one style`, 'seconds', 'result'], ...style.rows]);
  const control = await onDesk(reference, (desk) => measureStyle(desk, WITHOUT_STYLE.slice(0, number)));
  log(`loop B, ${number} corrections without a style: ${control.isAccepted ? 'ACCEPTED' : 'refused'}`);
  printTable([[`loop B, ${number} answers to other questions`, 'seconds', 'result'], ...control.rows]);
  log(`resident set at most ${style.rssMb} MB; 1.5 × the file and the memory that doctor states are ${limitMb} MB: ${style.rssMb <= limitMb ? 'reached' : 'NOT reached'}`); // prettier-ignore
  Object.assign(figures, {
    loop_b_1b_seconds: Math.max(style.seconds, control.seconds),
    loop_b_1b_accepted: style.isAccepted,
    loop_b_1b_control_accepted: control.isAccepted,
    loop_b_1b_elsewhere_changed: style.elsewhereChanged,
    loop_b_1b_rolled_back: style.isRolledBack,
    loop_b_1b_rss_mb: style.rssMb,
    loop_b_1b_rss_limit_mb: limitMb,
    loop_b_1b_rss_added_mb: style.rssAddedMb,
  });
  await onDesk(reference, (desk) => measureInstant(desk, findings, isQuick));
}
