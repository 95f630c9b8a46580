// Loops A and B on a model of 1.1 B parameters, through the library as a program uses it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importBuilt } from '../dist.ts';
import { printTable } from '../report.ts';
import type { Findings } from './findings.ts';

type Library = typeof import('../../../src/index.ts');

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

const MAX_CORRECTIONS = 5;
const MAX_ANSWER = 12;

export async function measureLargeModel(
  reference: string,
  { figures }: Findings,
  log: (line: string) => void,
  isQuick: boolean,
): Promise<void> {
  const { loadModel, openLearning, openMemory } = await importBuilt<Library>('index');
  const { createHub } = await importBuilt<typeof import('../../../src/hub/hub.ts')>('hub/hub');
  const { createNodeHubPlatform } = await importBuilt<typeof import('../../../src/platform/node/process/hub-platform.ts')>('platform/node/process/hub-platform'); // prettier-ignore
  const path = await createHub({ platform: createNodeHubPlatform() }).resolveModelPath(reference, { download: true });
  const folder = await mkdtemp(join(tmpdir(), 'ruvllm-large-'));
  const memory = await openMemory({ place: folder, modelPath: path });
  const learning = await openLearning({ memory });
  const model = await loadModel(path, { memory, learning, modelName: 'large' });
  const ask = async (question: string) => {
    const requestId = crypto.randomUUID();
    const options = { requestId, maxTokens: MAX_ANSWER, temperature: 0 };
    const { text } = await model.generate([{ role: 'user', content: question }], options);
    return { requestId, text };
  };
  const askAll = (questions: readonly string[]) => Promise.all(questions.map(ask));
  const countChanged = async (before: readonly { text: string }[], questions: readonly string[]): Promise<number> => {
    const after = await askAll(questions);
    return after.filter(({ text }, i) => text !== before[i]!.text).length;
  };
  try {
    const elsewhere = isQuick ? ELSEWHERE.slice(0, 6) : ELSEWHERE;
    const facts = isQuick ? FACTS.slice(0, 4) : FACTS;
    const before = await askAll(elsewhere);
    log(`asked ${elsewhere.length} unrelated questions`);
    const rows = [['loop A', 'corrections', 'outcomes', 'loss']];
    for (const [question, answer] of facts) {
      const outcomes: string[] = [];
      let losses = '';
      for (let i = 0; i < MAX_CORRECTIONS; i++) {
        const { requestId } = await ask(question);
        const receipt = await learning.feedback('local', { requestId, correction: answer });
        const { outcome, lossBefore, lossAfter } = await receipt.learned;
        outcomes.push(outcome);
        if (i === 0) losses = lossBefore?.toFixed(2) ?? '–';
        if (lossAfter !== null && i === MAX_CORRECTIONS - 1) losses += ` → ${lossAfter.toFixed(2)}`;
        if (outcome === 'already-known') break;
      }
      rows.push([question, String(outcomes.length), [...new Set(outcomes)].join(', '), losses]);
      log(`taught: ${question}`);
    }
    figures['instant_elsewhere_changed'] = (await countChanged(before, elsewhere)) / elsewhere.length;

    const praised = await askAll(elsewhere);
    for (const { requestId } of praised) await (await learning.feedback('local', { requestId, thumbs: 'up' })).learned;
    figures['instant_praise_changed'] = (await countChanged(praised, elsewhere)) / elsewhere.length;
    printTable(rows);

    const rssBefore = process.memoryUsage().rss;
    let rss = rssBefore;
    const watch = setInterval(() => (rss = Math.max(rss, process.memoryUsage().rss)), 50);
    const runs = [['loop B', 'seconds', 'result']];
    let seconds = 0;
    for (let run = 1; run <= (isQuick ? 3 : 8); run++) {
      const startMs = performance.now();
      const { version, reason, isUnfinished } = await learning.sona.backgroundConsolidate('local', 'large');
      const took = (performance.now() - startMs) / 1000;
      seconds = Math.max(seconds, took);
      runs.push([`run ${run}`, took.toFixed(1), version === null ? reason : `${version.isAccepted ? 'accepted' : 'refused'}: ${version.reason}`]); // prettier-ignore
      log(`loop B: ${reason}`);
      if (!isUnfinished) break;
    }
    clearInterval(watch);
    printTable(runs);
    figures['loop_b_1b_seconds'] = seconds;
    figures['loop_b_1b_rss_mb'] = Math.round(rss / 1e6);
    figures['loop_b_1b_rss_added_mb'] = Math.round((rss - rssBefore) / 1e6);
    figures['loop_b_1b_elsewhere_changed'] = (await countChanged(before, elsewhere)) / elsewhere.length;
  } finally {
    await model.dispose();
    await learning.close();
    await memory.close();
    await rm(folder, { recursive: true });
  }
}
