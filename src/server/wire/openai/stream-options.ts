import { booleanField, type Field, readFields } from '../fields.ts';

/** What a stream tells besides its text. */
export interface StreamOptions {
  readonly hasUsage: boolean;
}

export const streamOptionsField: Field<StreamOptions> = {
  schema: { type: 'object', properties: { include_usage: booleanField.schema } },
  read(value, path) {
    const fields = { include_usage: booleanField };
    const { include_usage: hasUsage } = readFields(value, fields, { path, ignored: ['include_obfuscation'] });
    return { hasUsage: hasUsage ?? false };
  },
};
