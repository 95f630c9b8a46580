import type { View } from '../../app/views.ts';

export const view: View = {
  id: 'audit',
  title: 'Audit log',
  icon: 'audit',
  order: 3,
  isOpenTo: ({ read }) => read,
  load: () => import('./index.tsx'),
};
