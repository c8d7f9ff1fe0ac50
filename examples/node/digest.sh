#!/bin/sh
# Runs the task of the schedule: how many tasks the queue has, by state.
exec kumi jobs counts
