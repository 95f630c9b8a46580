// One damaged state file at a time. What the server then says must be true: data is there and right, or its absence is reported
// (an error to who asks for it and `degraded` in /health), and everything else is served.
import { relative, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom, type Random } from '../../src/core/random.ts';
import { type Corruption, corruptFile, takeSnapshot } from '../../test/support/state-corruptions.ts';
import { createClock, type Part } from '../part.ts';
import { ask } from '../support/client.ts';
import { runLoad } from '../support/mixed-load.ts';
import { createOracle, type Oracle } from '../support/oracle.ts';
import { createSite, kill, readHealth, type Site } from '../support/site.ts';
import { corruptionsOf, listStateFiles, type StateFile } from '../support/state-files.ts';
import { createFindings, type Findings, verify } from '../support/verify.ts';

const STATE = ['data', 'state', 'spill'] as const;
/** Of load before the damage; in a run of few rounds it needs only one file of each kind. */
const LOAD_MS = { many: 2500, few: 1000 };
const FEW_ROUNDS = 6;
const NUM_LANES = 2;
const START_LIMIT_MS = 60_000;

/** A folder in a known state, which can be restored. */
interface Original {
  readonly site: Site;
  readonly oracle: Oracle;
  readonly files: readonly StateFile[];
  restore(): void;
  dispose(): void;
}

async function createOriginal(seed: number, isKilled: boolean, loadMs: number): Promise<Original> {
  const random = createRandom(seed);
  const site = await createSite({
    model: '260K',
    args: ({ path }) => ['--kv-spill', join(path, 'spill'), '--no-learning'],
  });
  const oracle = createOracle();
  const server = await site.start();
  const over = new AbortController();
  let number = 0;
  const load = runLoad({ url: server.url, site, oracle, random, nextNumber: () => ++number, refusals: new Map() }, 4, over.signal); // prettier-ignore
  await sleep(loadMs);
  over.abort();
  await load;
  if (isKilled) await kill(server);
  else {
    server.process.kill('SIGTERM');
    await server.exit;
  }
  const folders = STATE.map((name) => join(site.folder.path, name));
  const snapshots = folders.map((folder) => takeSnapshot(folder));
  return {
    site,
    oracle,
    files: listStateFiles(folders),
    restore: () => snapshots.forEach((snapshot) => snapshot.restore()),
    dispose() {
      snapshots.forEach((snapshot) => snapshot.dispose());
      site.dispose();
    },
  };
}

interface Verdict {
  readonly label: string;
  /** Why nothing is served, although the damaged file is not needed for that. */
  refused: string | null;
  /** Missing data that is not reported. */
  silent: string | null;
  wrong: string | null;
  isReported: boolean;
  isLost: boolean;
}

/** A key whose record is damaged must be denied; with the other one the rest is looked at. */
async function findWorkingToken(url: string, site: Site): Promise<string | null> {
  for (const token of [site.tokens.alice, site.tokens.bob]) {
    const { status } = await ask(url, '/v1/completions', { token, body: { model: 'm', prompt: 'Once', max_tokens: 2 } }); // prettier-ignore
    if (status === 200) return token;
  }
  return null;
}

interface Reports {
  readonly found: Findings;
  /** Why not everything could be compared. */
  readonly error: string | null;
  readonly health: Awaited<ReturnType<typeof readHealth>>;
  /** Since the start. */
  readonly output: string;
  readonly fileName: string;
  readonly isAuditBroken: boolean;
}

/** A loss that neither /health nor the log reports is silent; a value that was never written is wrong, reported or not. */
export function compareReports({
  found,
  error,
  health,
  output,
  fileName,
  isAuditBroken,
}: Reports): Pick<Verdict, 'silent' | 'wrong' | 'isReported' | 'isLost'> {
  const isInLog = output.includes(fileName) || /damaged|degraded|corrupt|unreadable|quarantine/i.test(output);
  const isReported = health === null || health.status !== 200 || health.degraded.length > 0;
  const isLost = found.lost.length > 0 || error !== null;
  const isSilent = isLost && !isReported && !isInLog;
  const silent = `${found.lost.length} lost (${found.lost[0]?.kind ?? ''} ${found.lost[0]?.message ?? error}), health ${JSON.stringify(health)}, audit ${isAuditBroken ? 'broken' : 'intact'}`; // prettier-ignore
  return { silent: isSilent ? silent : null, wrong: found.wrong[0] ?? null, isReported, isLost };
}

async function judge(
  { site, oracle: original }: Original,
  label: string,
  fileName: string,
  random: Random,
): Promise<Verdict> {
  const verdict: Verdict = { label, refused: null, silent: null, wrong: null, isReported: false, isLost: false };
  const oracle = structuredClone(original); // what is lost is forgotten
  const outputBefore = site.errorOutput().length;
  let server;
  try {
    server = await site.start({ limitMs: START_LIMIT_MS });
  } catch (error) {
    verdict.refused = `did not start: ${(error as Error).message.slice(0, 200)} ${site.errorOutput().slice(outputBefore).slice(0, 300)}`; // prettier-ignore
    return verdict;
  }
  try {
    if ((await findWorkingToken(server.url, site)) === null) verdict.refused = 'no key gets an answer';
    const found = createFindings();
    let error: string | null = null;
    await verify(server.url, site, oracle, found, { random, isWhole: true }).catch((cause: unknown) => {
      error = cause instanceof Error ? cause.message : String(cause);
    });
    const health = await readHealth(server.url);
    const audit = await ask(server.url, '/admin/memory/audit/verify', { token: site.tokens.admin, body: {} });
    const isAuditBroken = audit.status >= 500 || audit.body['isIntact'] === false;
    const output = site.errorOutput().slice(outputBefore);
    Object.assign(verdict, compareReports({ found, error, health, output, fileName, isAuditBroken }));
  } catch (error) {
    verdict.refused = `stopped answering: ${(error as Error).message}`;
  } finally {
    await kill(server);
  }
  return verdict;
}

/** Each kind of file with each corruption before any repetition. */
function* plan(files: readonly StateFile[], random: Random): Generator<{ file: StateFile; corruption: Corruption }> {
  const kinds = [...new Set(files.map(({ kind }) => kind))];
  const corruptions = corruptionsOf(random);
  for (;;) {
    for (const corruption of corruptions) {
      for (const kind of kinds) {
        const same = files.filter((file) => file.kind === kind);
        yield { file: same[Math.floor(random.next() * same.length)]!, corruption };
      }
    }
  }
}

export const corrupt: Part = {
  name: 'corrupt',
  summary: 'one damaged state file of every kind at a time',
  async run(options) {
    const clock = createClock(options, 160);
    const verdicts: Verdict[] = [];
    const kinds = new Map<string, number>();
    const lane = async (index: number): Promise<void> => {
      const random = createRandom(options.seed * 100 + index);
      const loadMs = (options.maxRounds ?? Infinity) < FEW_ROUNDS ? LOAD_MS.few : LOAD_MS.many;
      const original = await createOriginal(options.seed * 100 + index, index % 2 === 0, loadMs);
      const { path } = original.site.folder;
      try {
        for (const { file, corruption } of plan(original.files, random)) {
          original.restore();
          if (!corruptFile({ kind: 'derived', path: file.path }, corruption, null)) continue; // only the path matters
          if (!clock.next()) return;
          const label = `${file.kind}, ${corruption.name} (${relative(path, file.path)}, ${index % 2 === 0 ? 'after a kill' : 'after a stop'})`; // prettier-ignore
          verdicts.push(await judge(original, label, file.path.split('/').at(-1)!, random));
          kinds.set(file.kind, (kinds.get(file.kind) ?? 0) + 1);
          if (verdicts.length % 20 === 0) options.log(`${verdicts.length} corruptions`);
        }
      } finally {
        original.dispose();
      }
    };
    await Promise.all(Array.from({ length: Math.min(NUM_LANES, options.maxRounds ?? NUM_LANES) }, (_, i) => lane(i)));
    const of = (name: 'refused' | 'silent' | 'wrong'): string[] =>
      verdicts.filter((one) => one[name] !== null).map((one) => `${one.label}: ${one[name]}`);
    const [refused, silent, wrong] = [of('refused'), of('silent'), of('wrong')];
    return {
      figures: {
        corruptions: verdicts.length,
        kinds: JSON.stringify(Object.fromEntries(kinds)),
        silent_losses: silent.length,
        wrong_data: wrong.length,
        refused_to_serve_rest: refused.length,
        reported: verdicts.filter(({ isReported }) => isReported).length,
        losses: verdicts.filter(({ isLost }) => isLost).length,
      },
      problems: [
        ...refused.map((text) => `refused: ${text}`),
        ...silent.map((text) => `silent: ${text}`),
        ...wrong.map((text) => `wrong: ${text}`),
      ],
    };
  },
};
