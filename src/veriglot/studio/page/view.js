// What every view imports: elements by tagged templates, and hooks.

import { Component, createRef, h, render } from "./vendor/preact.js";
import {
  useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

const html = htm.bind(h);

/** The names of those classes whose condition holds. */
const classes = (/** @type {Record<string, unknown>} */ named) =>
  Object.entries(named).filter(([, on]) => on).map(([name]) => name).join(" ");

export {
  Component, classes, createRef, h, html, render, useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo,
  useReducer, useRef, useState,
};
