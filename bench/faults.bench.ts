// Effect of kills, damaged files, hostile grammars, documents, messages and texts, curious tenants, forbidden addresses, verifications and
// shutdowns on a server: the campaign with fixed sizes, in one JSON line.
//   npm run bench -- faults [--kills 200] [--corruptions 160] [--seed 1] [--minutes 8, at most for each part]
import { parseArgs } from 'node:util';
import type { PartResult } from '../campaign/part.ts';
import { PARTS } from '../campaign/parts.ts';
import { runPart } from '../campaign/run-part.ts';
import { measureAuditPrice } from './support/audit-price.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    corruptions: { type: 'string', default: '160' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '8' },
  },
});
const [numKills, numCorruptions, seed, minutes] = [values.kills, values.corruptions, values.seed, values.minutes].map(Number) as [number, number, number, number]; // prettier-ignore
if (![numKills, numCorruptions, seed, minutes].every((value) => value > 0)) {
  console.error('error: --kills, --corruptions, --seed and --minutes must be numbers above 0');
  process.exit(2);
}

/** The load has no end of its own. */
const LOAD_MINUTES = 3;

async function run(name: string, maxRounds?: number, limit = minutes): Promise<PartResult> {
  const part = PARTS.find((one) => one.name === name)!;
  const log = (line: string): void => console.error(`  ${line}`);
  return runPart(part, { seed, minutes: limit, log, ...(maxRounds === undefined ? {} : { maxRounds }) });
}

// First: the others leave the machine busy.
const audit = await measureAuditPrice();
const hostile = await run('hostile');
const documents = await run('documents');
const kills = await run('kills', numKills);
const corrupt = await run('corrupt', numCorruptions);
const fetch = await run('fetch');
const timing = await run('timing');
const audited = await run('audit');
const drain = await run('drain');
const mcp = await run('mcp');
const injections = await run('injections');
const load = await run('load', undefined, Math.min(minutes, LOAD_MINUTES));
const sum = (...counts: unknown[]): number => counts.reduce<number>((total, count) => total + Number(count ?? NaN), 0);
console.log(
  JSON.stringify({
    bench: 'faults',
    kills: kills.figures['kills'],
    acknowledged: kills.figures['acknowledged'],
    acked_lost: kills.figures['acked_lost'],
    corruptions: corrupt.figures['corruptions'],
    silent_losses: corrupt.figures['silent_losses'],
    wrong_data: sum(kills.figures['wrong_data'], corrupt.figures['wrong_data']),
    refused_to_serve_rest: corrupt.figures['refused_to_serve_rest'],
    fetch_probes: fetch.figures['fetch_probes'],
    fetch_escapes: fetch.figures['fetch_escapes'],
    file_leaks: fetch.figures['file_leaks'],
    hostile_max_gap_ms: hostile.figures['hostile_max_gap_ms'],
    control_max_gap_ms: hostile.figures['control_max_gap_ms'],
    documents_gap_ms: documents.figures['documents_gap_ms'],
    mcp_crashes: mcp.figures['mcp_crashes'],
    injections_tried: injections.figures['injections_tried'],
    injections_obeyed: injections.figures['injections_obeyed'],
    prefix_auc_other: timing.figures['prefix_auc_other'],
    prefix_auc_same: timing.figures['prefix_auc_same'],
    restart_ms: kills.figures['restart_ms'],
    audit_ms: audit,
    verifies: audited.figures['verifies'],
    false_alarms: audited.figures['false_alarms'],
    drain_requests: drain.figures['drain_requests'],
    drain_cut: drain.figures['drain_cut'],
    health_p99_ms: load.figures['health_p99_ms'],
    first_byte_p99_ms: load.figures['first_byte_p99_ms'],
    rss_slope: load.figures['rss_slope'],
    chats_lost: load.figures['chats_lost'],
    problems: [kills, corrupt, hostile, documents, fetch, timing, audited, drain, mcp, injections, load].reduce(
      (count, { problems, slowness = [] }) => count + problems.length + slowness.length,
      0,
    ),
  }),
);
// Threads and sockets of killed servers must not keep the process.
process.exit(0);
