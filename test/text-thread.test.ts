// The real thread for long texts: its results equal those of the caller's thread.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import type { ChatMessage } from '../src/chat/types.ts';
import type { RuvLLMError } from '../src/core/errors.ts';
import { openModelFile } from '../src/platform/node/files/open-model-file.ts';
import { runTextTask, type TextTask } from '../src/runtime/text/text-tasks.ts';
import { readTextSide } from '../src/runtime/text/text-side.ts';
import { hasDist, importDist } from './support/import-dist.ts';
import { buildRandomModel } from './support/random-model.ts';

const suites = join(import.meta.dirname, '../../shared/suites');
const isBuilt = hasDist;
const hasSuites = existsSync(suites);
if (!isBuilt) console.log('skipped: what tests import is not built, run "npm test"');
if (!hasSuites) console.log(`skipped: no vocabularies and templates at ${suites}`);
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-text-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function openBoth(path: string) {
  const { openTextThread } =
    await importDist<typeof import('../src/node/text/text-thread.ts')>('node/text/text-thread.js');
  const gguf = openModelFile(path);
  const context = readTextSide(gguf.metadata);
  gguf.source.close();
  const thread = openTextThread(path);
  const same = async (task: TextTask): Promise<void> => {
    const outcomes = [() => runTextTask(task, context), () => thread.run(task, null)].map(async (run) => {
      try {
        return await run();
      } catch (error) {
        const { code, message, data } = error as RuvLLMError; // Two builds: no instanceof.
        expect(code).toBeDefined();
        return { code, message, data };
      }
    });
    const [here, aside] = await Promise.all(outcomes);
    expect(aside).toEqual(here);
  };
  return { same, context, ...thread };
}

const anyText = fc.oneof(fc.string({ unit: 'binary', maxLength: 60 }), fc.string({ maxLength: 60 }));
const encodeTask = (texts: readonly string[], addSpecial: boolean): TextTask => ({
  kind: 'encode',
  texts,
  options: { addSpecial },
});

describe.skipIf(!isBuilt || !hasSuites)('[TX2]', () => {
  test.each(['bert-bge', 'gpt-2', 'llama-spm', 'phi-3'])('%s: the same ids, texts and errors', async (name) => {
    const path = join(suites, `tokenizers/ggml-vocab-${name}.gguf`);
    const { same, context, dispose } = await openBoth(path);
    const cases = readFileSync(`${path}.inp`, 'utf8').split('\n__ggml_vocab_test__\n');
    await same(encodeTask(cases, true));
    await same(encodeTask(['ok', 'a\ud800'], false));
    for (const text of cases) {
      for (const parseSpecial of [true, false]) {
        await same({ kind: 'continuation', text, options: { parseSpecial, isContinuation: parseSpecial } });
        await same({ kind: 'prompt', prompt: text, options: { parseSpecial } });
      }
      await same({ kind: 'prompt', prompt: [{ role: 'user', content: text }], options: { parseSpecial: false } });
    }
    for (const ids of [[1, 5, 300], [context.tokenizer.vocabSize]]) {
      for (const skipSpecial of [true, false]) await same({ kind: 'decode', ids, options: { skipSpecial } });
    }
    await fc.assert(
      fc.asyncProperty(fc.array(anyText, { maxLength: 4 }), fc.boolean(), (texts, addSpecial) =>
        same(encodeTask(texts, addSpecial)),
      ),
      { numRuns: 50 },
    );
    await dispose();
  });

  const role = fc.constantFrom<ChatMessage['role']>('system', 'user', 'assistant', 'tool');
  const message = fc.record({ role, content: anyText }) as fc.Arbitrary<ChatMessage>;
  const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } } as const;
  const TEMPLATES = [
    'Qwen-Qwen3-0.6B',
    'meta-llama-Llama-3.1-8B-Instruct',
    'google-gemma-2-2b-it',
    'openai-gpt-oss-120b',
  ];

  test.each(TEMPLATES)('%s: the same conversations, ends and errors', async (name) => {
    const value = readFileSync(join(suites, `chat-templates/${name}.jinja`), 'utf8');
    const path = join(folder, `${name}.gguf`);
    const metadata = [{ key: 'tokenizer.chat_template', type: 'string', value }] as const;
    writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 3, metadata }));
    const { same, dispose } = await openBoth(path);
    const property = fc.asyncProperty(
      fc.array(message, { minLength: 1, maxLength: 4 }),
      fc.constantFrom('auto', 'none', 'high'),
      fc.boolean(),
      (prompt, reasoning, hasTools) =>
        same({
          kind: 'prompt',
          prompt,
          options: { parseSpecial: false, reasoning: reasoning as 'auto', tools: hasTools ? [tool] : [] },
        }),
    );
    await fc.assert(property, { numRuns: 50 });
    await dispose();
  });
});

test.skipIf(!isBuilt)('[TX5] does not read a file that was replaced after loading', async () => {
  const path = join(folder, 'replaced.gguf');
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 3 }));
  const { run, dispose } = await openBoth(path);
  rmSync(path);
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'F32', seed: 4 }));
  expect(await run(encodeTask(['a'], false), null)).toBeNull();
  await dispose();
});
