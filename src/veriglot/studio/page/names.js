// What people are called where somebody reads it: by the name that they chose, or by their role and a number.

import { t } from "./texts.js";

/** As reviewers know somebody, who judge a text and not a name. @param {{role: string, number: number}} person */
export const pseudonym = ({ role, number }) => t(`person.${role}`, { n: number });

/** Whoever it is, by their name where it may be known. @param {{role: string, number: number, name?: string | null}} person */
export const called = (person) => person.name ?? pseudonym(person);

/** Somebody by their public id, for leads; those who joined since the people were asked for are not among them yet.
 * @param {Map<string, any>} people @param {string} id */
export const calledBy = (people, id) => people.has(id) ? called(people.get(id)) : t("person.unknown");
