import { booleanField, type Field, ignoredFields, readFields, schemaOf } from '../fields.ts';

export interface StreamOptions {
  readonly hasUsage: boolean;
}

const FIELDS = { include_usage: booleanField, ...ignoredFields('include_obfuscation') };

export const streamOptionsField: Field<StreamOptions> = {
  schema: schemaOf(FIELDS),
  read: (value, path) => ({ hasUsage: readFields(value, FIELDS, { path }).include_usage ?? false }),
};
