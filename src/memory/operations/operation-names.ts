/** Permission an API key needs: to read the tenant's data, to change it, or to operate the memory. */
export type OperationScope = 'read' | 'write' | 'admin';

/** Every operation with its scope. In a file of its own, because clients and the table of routes need no schemas. */
export const MEMORY_SCOPES = {
  'memory.add': 'write',
  'memory.get': 'read',
  'memory.search': 'read',
  'memory.remove': 'write',
  'memory.stats': 'read',
  'memory.health': 'admin',
  'memory.backup': 'admin',
  'memory.check': 'admin',
  'memory.neighbours': 'read',
  'memory.link': 'write',
  'memory.list': 'read',
  'memory.graph': 'read',
  'documents.add': 'write',
  'documents.list': 'read',
  'documents.get': 'read',
  'documents.remove': 'write',
  'documents.remove-missing': 'write',
  'memory.export': 'read',
  'memory.import': 'admin',
  'audit.search': 'read',
  'audit.stats': 'read',
  'audit.verify': 'read',
  'audit.export': 'read',
  'audit.show': 'read',
  'audit.similar': 'read',
  'audit.decisions': 'read',
  'sessions.list': 'read',
  'sessions.show': 'read',
  'sessions.rm': 'write',
  'policies.list': 'read',
  'policies.get': 'read',
  'policies.history': 'read',
  'policies.rollback': 'admin',
  'agents.recall': 'read',
  'facts.list': 'read',
  'facts.why': 'read',
  'facts.pin': 'write',
  'facts.forget': 'write',
  'episodes.add': 'write',
  'notes.list': 'read',
  'notes.add': 'write',
  'notes.clear': 'write',
  'tool-cache.list': 'read',
  'tool-cache.stats': 'read',
  'tool-cache.clear': 'write',
  'tenants.erase': 'admin',
  'memory.rotate-key': 'admin',
} as const satisfies Readonly<Record<string, OperationScope>>;

/** The route of an operation. */
export function operationPath({ name }: { readonly name: string }): string {
  return `/admin/memory/${name.replace(/^memory\./, '').replaceAll('.', '/')}`;
}
