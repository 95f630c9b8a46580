// A model of 1.1 B parameters with memory and learning, through the library as a program uses it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importBuilt } from '../dist.ts';

type Library = typeof import('../../../src/index.ts');

/** Ids are fixed, because they decide which requests are held out. */
const idOf = (n: number): string => `0199a0b4-7c00-7000-8000-${n.toString(16).padStart(12, '0')}`;

export async function openDesk(reference: string) {
  const { loadModel, openLearning, openMemory } = await importBuilt<Library>('index');
  const { createHub } = await importBuilt<typeof import('../../../src/hub/hub.ts')>('hub/hub');
  const { createNodeHubPlatform } = await importBuilt<typeof import('../../../src/platform/node/process/hub-platform.ts')>('platform/node/process/hub-platform'); // prettier-ignore
  const { estimateMemory } = await importBuilt<typeof import('../../../src/node/engine/estimate-memory.ts')>('node/engine/estimate-memory'); // prettier-ignore
  const path = await createHub({ platform: createNodeHubPlatform() }).resolveModelPath(reference, { download: true });
  const folder = await mkdtemp(join(tmpdir(), 'ruvllm-large-'));
  const memory = await openMemory({ place: folder, modelPath: path });
  const learning = await openLearning({ memory });
  const model = await loadModel(path, { memory, learning, modelName: 'large' });
  let numAsked = 0;
  const ask = async (question: string, maxTokens: number) => {
    const requestId = idOf(++numAsked);
    // Recalled corrections would answer in place of what was learned.
    const options = { requestId, maxTokens, temperature: 0, corrections: false };
    const { text } = await model.generate([{ role: 'user', content: question }], options);
    return { requestId, text };
  };
  return {
    path,
    /** What `doctor` and `show` say that the loaded model takes. */
    modelBytes: estimateMemory(path)!.totalBytes,
    learning,
    ask,
    askAll: (questions: readonly string[], maxTokens: number) =>
      Promise.all(questions.map((question) => ask(question, maxTokens))),
    /** Runs loop B until it decides. */
    async runLoopB(maxRuns: number) {
      const runs: { readonly seconds: number; readonly isAccepted: boolean; readonly reason: string }[] = [];
      for (let run = 0; run < maxRuns; run++) {
        // Without the time that it waits for a run of the schedule.
        const { version, reason, elapsedMs } = await learning.sona.backgroundConsolidate('local', 'large');
        runs.push({ seconds: elapsedMs / 1000, isAccepted: version?.isAccepted ?? false, reason });
        if (version !== null) break;
      }
      return runs;
    },
    async close() {
      await model.dispose();
      await learning.close();
      await memory.close();
      await rm(folder, { recursive: true });
    },
  };
}
export type Desk = Awaited<ReturnType<typeof openDesk>>;
