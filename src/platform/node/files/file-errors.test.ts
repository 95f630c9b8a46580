import { expect, test } from 'vitest';
import { toFileError } from './file-errors.ts';

test.each([
  ['ENOSPC', 'disk_full'],
  ['EDQUOT', 'disk_full'],
  ['ENOENT', 'not_found'],
  ['EIO', 'io'],
])('%s is %s', (errno, code) => {
  const error = toFileError(Object.assign(new Error('x'), { code: errno }), 'cannot write', '/p');
  expect(error).toMatchObject({ code, message: `cannot write /p: ${errno}`, data: { path: '/p', errno } });
});
