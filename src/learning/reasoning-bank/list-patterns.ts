import { nodeFromRecord } from '../../memory/schemas/node.ts';
import { BANK_SOURCE, type MemoryStore } from '../../memory/types.ts';
import { type Pattern, patternFromNode } from './pattern.ts';

const PAGE = 500;

/** The newest patterns of the bank, with their vectors. */
export async function listPatterns(store: MemoryStore, tenant: string, limit: number): Promise<Pattern[]> {
  const all: Pattern[] = [];
  const filter = { fields: [{ field: 'source', is: '=', value: BANK_SOURCE } as const] };
  for (let after: string | null | undefined; after !== null && all.length < limit;) {
    const page = await store.find(tenant, { kinds: ['pattern'], filter, order: 'newest', limit: Math.min(PAGE, limit - all.length), ...(after === undefined ? {} : { after }) }); // prettier-ignore
    all.push(...page.records.map((record) => patternFromNode(nodeFromRecord(record))));
    after = page.next;
  }
  return all;
}
