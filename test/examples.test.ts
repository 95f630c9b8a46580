// Runs every example like a user, with a small random model; the expectations hold for any model.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { buildRandomModel } from './support/random-model.ts';
import { createServeFolder, type ServeProcess } from './support/serve-process.ts';

const TEMPLATE = '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:';
const metadata = [{ key: 'tokenizer.chat_template', type: 'string', value: TEMPLATE }] as const;
const shape = { contextLength: 512 };

const serving = createServeFolder(shape);
const { model } = serving;
const adapter = join(dirname(model), 'adapter.gguf');
let server: ServeProcess;
afterAll(() => serving.dispose());

beforeAll(async () => {
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 1, shape, metadata }));
  if (!isServerBuilt) return;
  const pairs = join(dirname(model), 'pairs.jsonl');
  const pair = (i: number): string => JSON.stringify({ prompt: `Line ${i} is`, completion: ' the rain' });
  writeFileSync(pairs, Array.from({ length: 24 }, (_, i) => pair(i)).join('\n'));
  const parts = ['--held-out', '0.4', '--validation', '0', '--near-duplicates', '1'];
  const trained = serving.run('train', 'sft', pairs, '--model', model, '--output', adapter, '--learning-rate', '0.05', ...parts); // prettier-ignore
  expect(trained.status, trained.stdout).toBe(0);
  server = await serving.start(model);
});

interface Expected {
  /** Arguments after the path of the example. Default: the model. */
  readonly args?: () => string[];
  /** Patterns of the output, in order. */
  readonly prints: readonly RegExp[];
}

/** Expected output per file, whatever the weights. */
const EXAMPLES: Readonly<Record<string, Expected>> = {
  'generate.mjs': {
    prints: [/^Once upon a time/, /^[1-4]?\d tokens, \d+\.\d tokens\/s$/m, /the stream gave the same text/],
  },
  'chat.mjs': { prints: [/^> What is the capital of France\?$/m, /^> And of Italy\?$/m] },
  'stream.mjs': {
    prints: [
      /^\[[1-6]?\d tokens, ended by (length|stop), first token after \d+ ms\]$/m,
      /^stopped after 5 chunks$/m,
      /^stopped: aborted$/m,
    ],
  },
  'schema.mjs': {
    prints: [
      /^\{\s(?=[^]*city: )(?=[^]*country: '(France|Italy|Spain)')[^]*population: \d{1,9}\b/,
      /^regular expression:  (red|green|blue)$/m,
      /^grammar: (yes|no)$/m,
      /^rejected: .*\$ref.*example\.org/m,
    ],
  },
  'embed.mjs': { prints: [/^(-?\d\.\d{3} .*\n){3}/, /^\d+ tokens, 96 values each$/m] },
  'memory.mjs': {
    prints: [
      /^0\.\d{3} The library opens at nine/,
      /^without memory: \d{2} prompt tokens/m,
      /^with memory: +\d{3} prompt tokens/m,
      /^2 calls in the audit log, intact$/m,
    ],
  },
  'feedback.mjs': {
    // Random weights and a word of seven tokens: the learned change is too small to produce it, but visible.
    prints: [
      /^before: The best colour of all is(?! pur)/m,
      /^ {2}learned: loss 9\.\d+ → /m,
      /^ {2}learned: loss \d\.\d+ → 8\.[0-6]/m,
      /^after \d+ corrections: The best colour of all is/m,
      /^after a rollback it answers as before$/m,
    ],
  },
  'teach.mjs': {
    // Random weights do not repeat the correction; the recorded run is in docs/learning.md.
    prints: [
      /^before:$/m,
      /^corrected once, remembered: near questions of this user /m,
      /^other answers are unchanged$/m,
      /^after a restart:$/m,
      /^after a rollback:$/m,
      /^it answers as before$/m,
    ],
  },
  'adapter.mjs': {
    args: () => [model, adapter],
    prints: [
      /^the adapter changes \d+ matrices with rank 4 \(\d+ bytes\)$/m,
      /^without adapter: +(\S[^]*?)\nwith adapter: +(?! |\1\nwith scale)/m,
      /^with scale 0.5: /m,
      /^unloaded: true$/m,
    ],
  },
  'prefix-cache.mjs': {
    prints: [/^first question: +0 of /m, /^second question: +[1-9]\d* of /m, /^another tenant: +0 of /m, /^2 turns, /m],
  },
  'routing.mjs': {
    prints: [
      /^model auto: small answered \(safe-default\)$/m,
      /rated: partial/,
      /^model large: large answered \(named\)$/m,
      /rated: success/,
    ],
  },
  'openai-client.mjs': {
    args: () => [server.url],
    prints: [/^served: tiny$/m, /^\d+ tokens$/m, /^{ colour: '(red|green|blue)' }$/m],
  },
  'anthropic-client.mjs': {
    args: () => [server.url],
    // This API has no seed, and random weights may end the answer at any token.
    prints: [
      /^the question has \d+ tokens$/m,
      /^ended by (max_tokens, 24|end_turn, \d+) tokens$/m,
      /^streamed \d+ tokens$/m,
    ],
  },
};
/** Deployment files are tested in deploy-examples.test.ts. */
const HELPERS = ['browser', 'default-model.mjs', 'README.md', 'systemd'];

test('runs every file of the folder and finds it in its README', () => {
  const files = readdirSync('examples').sort();
  expect(files).toEqual([...Object.keys(EXAMPLES), ...HELPERS].sort());
  const readme = readFileSync('examples/README.md', 'utf8');
  for (const file of Object.keys(EXAMPLES)) expect(readme).toContain(`| [\`${file}\`](${file})`);
});

/** Ignores an API key of the developer. */
const env = { ...serving.environment, RUVLLM_API_KEY: 'none', RUVLLM_MODEL: '', HF_HUB_OFFLINE: '1' };
const run = (file: string, args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  spawnSync(process.execPath, [join('examples', file), ...args], { encoding: 'utf8', env: { ...env, ...more } });

describe.skipIf(!isServerBuilt)('an example', () => {
  test.each(Object.entries(EXAMPLES))('%s', (file, { args = () => [model], prints }) => {
    const { status, stdout, stderr } = run(file, args());
    expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
    expect(stdout).not.toContain('BUG');
    let remainder = stdout;
    for (const pattern of prints) {
      const match = pattern.exec(remainder);
      expect(match, `${pattern} in:\n${remainder}`).not.toBeNull();
      remainder = remainder.slice(match!.index + match![0].length);
    }
  });

  test('without an argument uses the model of npm start', () => {
    expect(run('generate.mjs', [], { RUVLLM_MODEL: model })).toMatchObject({ status: 0, stderr: '' });
    const none = {
      HF_HUB_CACHE: dirname(model),
      npm_config_registry: 'http://127.0.0.1:9',
      npm_config_fetch_retries: '0',
    };
    expect(run('generate.mjs', [], { ...none, RUVLLM_MODEL: 'missing.gguf' }).stderr).toContain(
      'missing.gguf does not exist',
    );
  });
});
