// Teaches facts to a served chat model through HTTP, and asks for them and for other things before and after.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { printTable } from '../report.ts';
import { ELSEWHERE, FACTS, type TaughtFact } from './facts-data.ts';
import type { Findings } from './findings.ts';

const USER = 'ann';
/** Enough for a name after a long beginning. */
const MAX_TOKENS = 32;
const MAX_CORRECTIONS = 5;
/** Praised answers; each takes a step of the instant loop. */
const NUM_PRAISED = 8;

interface Answer {
  readonly id: string;
  readonly text: string;
}

interface Teaching {
  readonly fact: TaughtFact;
  readonly before: string;
  readonly numCorrections: number;
  readonly outcome: string;
  readonly numHits: number;
}

const share = (part: number, whole: number): number => Math.round((part / whole) * 1000) / 1000;

function connect(url: string) {
  async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    const reply = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(reply)}`);
    return reply;
  }
  return {
    call,
    async ask(question: string): Promise<Answer> {
      const messages = [{ role: 'user', content: question }];
      const reply = await call('POST', '/v1/chat/completions', { model: 'default', messages, user: USER, max_tokens: MAX_TOKENS, temperature: 0 }); // prettier-ignore
      const [choice] = reply['choices'] as { message: { content: string } }[];
      return { id: reply['id'] as string, text: choice!.message.content };
    },
    /** Waits for the final outcome. */
    async rate(id: string, feedback: object): Promise<string> {
      await call('POST', '/v1/feedback', { request_id: id, ...feedback });
      for (;;) {
        const { state } = (await call('GET', `/v1/feedback/${id}`))['outcome'] as { state: string };
        if (state !== 'pending') return state;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
  };
}
type Client = ReturnType<typeof connect>;

async function teach({ ask, rate }: Client, fact: TaughtFact): Promise<Teaching> {
  let answer = await ask(fact.question);
  const before = answer.text;
  let numCorrections = 0;
  let outcome = '–';
  while (!answer.text.includes(fact.key) && numCorrections < MAX_CORRECTIONS) {
    outcome = await rate(answer.id, { correction: fact.correction });
    numCorrections++;
    answer = await ask(fact.question);
  }
  let numHits = 0;
  for (const question of fact.paraphrases) if ((await ask(question)).text.includes(fact.key)) numHits++;
  return { fact, before, numCorrections, outcome, numHits };
}

async function askAll({ ask }: Client, questions: readonly string[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const question of questions) answers.push(await ask(question));
  return answers;
}

const countChanged = (before: readonly Answer[], after: readonly Answer[]): number =>
  before.filter(({ text }, i) => text !== after[i]!.text).length;

async function measure(client: Client, findings: Findings, log: (line: string) => void): Promise<void> {
  const questions = FACTS.map(({ question }) => question);
  const plain = await askAll(client, questions);
  const elsewhere = await askAll(client, ELSEWHERE);
  log('asked everything once');
  const taught: Teaching[] = [];
  for (const fact of FACTS) taught.push(await teach(client, fact));
  log(`taught ${FACTS.length} facts`);
  const numChanged = countChanged(elsewhere, await askAll(client, ELSEWHERE));
  const kept = await askAll(client, questions);
  const numKept = kept.filter(({ text }, i) => text.includes(FACTS[i]!.key)).length;
  const praised = ELSEWHERE.slice(-NUM_PRAISED);
  const unrated = await askAll(client, praised);
  const liked = await askAll(client, praised);
  for (const { id } of liked) await client.rate(id, { thumbs: 'up' });
  const numPraiseChanged = countChanged(liked, await askAll(client, praised));
  log('praised');
  await client.call('POST', '/admin/learning/forget', { userId: USER });
  const numUnlearned = FACTS.length - countChanged(plain, await askAll(client, questions));
  printTable([
    ['question', 'corrections', 'outcome', 'paraphrases', 'answer before'],
    ...taught.map(({ fact, numCorrections, outcome, numHits, before }) => [
      fact.question,
      String(numCorrections),
      outcome,
      `${numHits} of ${fact.paraphrases.length}`,
      before.replaceAll(/\s+/g, ' ').slice(0, 60),
    ]),
  ]);
  // A fact that the model knows was not taught.
  const corrected = taught.filter(({ numCorrections }) => numCorrections > 0);
  const figures = {
    corrections_needed: Math.max(...corrected.map(({ numCorrections }) => numCorrections)),
    paraphrase_hit: share(corrected.reduce((sum, { numHits }) => sum + numHits, 0), 2 * corrected.length), // prettier-ignore
    elsewhere_changed: share(numChanged, ELSEWHERE.length),
    facts_kept: share(numKept, FACTS.length),
    // The control: another cache hit or batch must not change an answer either.
    unrated_changed: countChanged(unrated, liked),
    praise_changed: numPraiseChanged,
    unlearned: share(numUnlearned, FACTS.length),
  };
  printTable([['figure', 'value'], ...Object.entries(figures).map(([name, value]) => [name, String(value)])]);
  Object.assign(findings.figures, figures);
}

/** `ruvllm serve` with its own memory, and the caches of this user. */
async function startServer(model: string, folder: string): Promise<{ url: string; stop(): Promise<void> }> {
  const env = { ...process.env, RUVLLM_DATA_DIR: join(folder, 'data'), RUVLLM_STATE_DIR: join(folder, 'state') };
  const args = ['bin/ruvllm.mjs', 'serve', `default=${model}`, '--context', '1024', '--port', '0', '--json'];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    exit.then(([code]) => Promise.reject(new Error(`the server ended with ${code}`))),
  ])) as [string];
  return {
    ...(JSON.parse(line) as { url: string }),
    async stop() {
      child.kill('SIGTERM');
      await exit;
    },
  };
}

/** Facts through the server's door: how often they must be corrected, and what else changes. */
export async function measureFacts(model: string, findings: Findings, log: (line: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-facts-'));
  try {
    const server = await startServer(model, folder);
    try {
      await measure(connect(server.url), findings, log);
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
