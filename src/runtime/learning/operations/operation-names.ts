import type { OperationScope } from '../../../memory/operations/operation-names.ts';

/** Every operation with its scope. In a file of its own, because the table of routes needs no schemas. */
export const LEARNING_SCOPES = {
  feedback: 'write',
  'learn.receipt': 'read',
  'learn.status': 'read',
  'learn.health': 'admin',
  'learn.patterns': 'read',
  'learn.lessons': 'read',
  'learn.data': 'read',
  'learn.series': 'read',
  'learn.run': 'admin',
  'learn.cancel': 'admin',
  'learn.history': 'read',
  'learn.diff': 'read',
  'learn.rollback': 'admin',
  'learn.reset': 'admin',
  'learn.forget': 'write',
  'learn.export': 'read',
  'federate.status': 'admin',
  'federate.set-privacy': 'admin',
  'federate.add-peer': 'admin',
  'federate.remove-peer': 'admin',
  'federate.push': 'admin',
  'federate.pull': 'admin',
} as const satisfies Readonly<Record<string, OperationScope>>;

/** The HTTP path of an operation. */
export function learningPath({ name }: { readonly name: string }): string {
  if (name.startsWith('federate.')) return `/admin/federation/${name.slice('federate.'.length)}`;
  return `/admin/learning/${name.replace(/^learn\./, '')}`;
}
