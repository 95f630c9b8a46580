import { z } from 'zod';
import { withoutUndefined } from '../common/store-access.ts';
import { aggregateQuery } from '../audit/aggregate.ts';
import { auditQuery } from '../audit/search.ts';
import { embedMeaning, includeVectors, meaning, minSimilarity } from './inputs.ts';
import { defineOperation, refuseInput, type MemoryOperation } from './operation.ts';
import { plainReport, plainEntry } from './plain.ts';

/** Approximate size of a page of an export. */
const MAX_PAGE_CHARS = 4 << 20;

const search = defineOperation({
  name: 'audit.search',
  summary: 'Finds requests by time, quality, latency, model, error, words and meaning, in any combination.',
  input: auditQuery
    .omit({ similarTo: true })
    .extend({ similarTo: meaning.optional(), minSimilarity: minSimilarity.optional(), includeVectors }),
  async run(memory, tenant, { similarTo, minSimilarity: least, includeVectors: hasVectors, ...query }) {
    if (similarTo === undefined && least !== undefined) throw refuseInput('minSimilarity requires similarTo', 'minSimilarity'); // prettier-ignore
    const near = similarTo === undefined ? undefined : await embedMeaning(memory, similarTo, 'similarTo');
    const page = await memory.audit.search(
      tenant,
      withoutUndefined({ ...query, similarTo: near && withoutUndefined({ ...near, minSimilarity: least }) }) as never,
    );
    return { ...page, entries: page.entries.map((entry) => plainEntry(entry, hasVectors)) };
  },
});

const stats = defineOperation({
  name: 'audit.stats',
  summary: 'Counts, percentiles, trends, models and errors of the matching requests.',
  input: aggregateQuery,
  run: async (memory, tenant, query) =>
    plainReport(await memory.audit.aggregate(tenant, withoutUndefined(query) as never)),
});

const verify = defineOperation({
  name: 'audit.verify',
  summary: 'Computes all hashes of the audit log again and says where its chain breaks.',
  input: z.strictObject({}),
  run: async (memory, tenant) => plainReport(await memory.audit.verify(tenant)),
});

const exportPage = defineOperation({
  name: 'audit.export',
  summary: 'Exports the audit log in the order of its chain, archived entries included, page by page.',
  input: z.strictObject({
    limit: z.int().min(1).max(1000).default(200),
    /** `next` of the page before: its last sequence. */
    after: z.int().min(0).default(0),
    includeVectors,
  }),
  async run(memory, tenant, { limit, after, includeVectors: hasVectors }) {
    const entries: object[] = [];
    let last = after;
    let numChars = 0;
    for await (const exported of memory.audit.export(tenant, after)) {
      if (entries.length === limit || numChars > MAX_PAGE_CHARS) return { entries, next: last };
      const line = plainEntry(exported, hasVectors);
      numChars += JSON.stringify(line).length;
      entries.push(line);
      last = exported.link.sequence;
    }
    return { entries, next: null };
  },
});

export const auditOperations: readonly MemoryOperation[] = [search, stats, verify, exportPage];
