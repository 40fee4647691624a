//! Runs in which a call of the disk fails: the answer must fit the outcome, nothing acknowledged
//! may be lost, and after a full disk work goes on.
