import { operationPath } from '../../memory/operations/operation-names.ts';
import type { AddedDocument } from '../../memory/documents/documents.ts';
import type { CommandContext } from '../command.ts';
import { askServer, readServer } from '../servers/ask-server.ts';
import type { MemoryClient } from './client-types.ts';

/** The memory of a running server. */
export function openHttpClient(
  { io, values }: Pick<CommandContext, 'io' | 'values'>,
  pathOf = (name: string): string => operationPath({ name }),
): MemoryClient {
  const { base, key } = readServer({ io, values });
  const tenant = values['--tenant'] as string | undefined;
  return {
    async call<T>(name: string, input: object): Promise<T> {
      const url = new URL(`${base}${pathOf(name)}`);
      if (tenant !== undefined) url.searchParams.set('tenant', tenant);
      return (await askServer({ io, base, key }, { method: 'POST', url, body: input })) as T;
    },
    async addDocument({ content, contentType = 'application/octet-stream', ...rest }) {
      const url = new URL(`${base}/admin/memory/documents`);
      for (const [key, value] of Object.entries(rest)) url.searchParams.set(key, String(value));
      if (tenant !== undefined) url.searchParams.set('tenant', tenant);
      const type = typeof content === 'string' ? 'text/plain' : contentType;
      return (await askServer({ io, base, key }, { method: 'POST', url, body: content, type })) as AddedDocument;
    },
    async close() {},
  };
}
