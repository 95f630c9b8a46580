import type { Field } from '../fields.ts';

/** Any value; its reader validates it. */
export const anyField: Field<unknown> = { schema: {}, read: (value) => value };
